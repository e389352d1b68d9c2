// The page's icons: strokes on a 16 by 16 grid, drawn in the colour of the text.

const PATHS = {
    runs: "M2 4h12M2 8h12M2 12h8",
    matrix: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
    compare: "M3 3h4v10H3zM9 3h4v10H9z",
    launch: "M5 3l8 5-8 5z",
    settings: "M2 5h7M12.5 5H14M9 3.2h3.5v3.6H9zM2 11h1.5M7 11h7M3.5 9.2H7v3.6H3.5z",
    link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a2.5 2.5 0 013.5 3.5L10.5 8M9 11.5L7.5 13A2.5 2.5 0 014 9.5L5.5 8",
    search: "M7 2.5a4.5 4.5 0 100 9 4.5 4.5 0 000-9zM10.5 10.5l3 3",
    close: "M4 4l8 8M12 4l-8 8",
    menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
    refresh: "M13 8a5 5 0 11-1.5-3.5M13 2v3h-3",
    download: "M8 2.5v7.5M5 7.5L8 10.5 11 7.5M3 13.5h10",
    copy: "M5.5 5.5h7v7h-7zM3.5 10.5v-7h7",
    down: "M4 6l4 4 4-4",
    right: "M6 4l4 4-4 4",
    up: "M4 10l4-4 4 4",
    end: "M8 2.5v8M4.5 7.5L8 11l3.5-3.5M3 13.5h10",
    stop: "M4 4h8v8H4z",
    trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
    check: "M3.5 8.5l3 3 6-7",
    cross: "M4.5 4.5l7 7M11.5 4.5l-7 7",
    minus: "M4 8h8",
    alert: "M8 2L14.5 13.5h-13zM8 6.5v3.5M8 11.7v.3",
    info: "M8 2a6 6 0 100 12A6 6 0 008 2zM8 7.5v3.5M8 5v.3",
    terminal: "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.5h2.5",
    chat: "M2.5 3.5h11v7.5H8L5 13.5V11H2.5z",
    sun: "M8 5a3 3 0 100 6 3 3 0 000-6zM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
    moon: "M13 9.5A5.5 5.5 0 016.5 3a5.5 5.5 0 106.5 6.5z",
    plus: "M8 3v10M3 8h10",
    keyboard: "M1.5 4.5h13v7h-13zM4 7h.3M6.5 7h.3M9 7h.3M11.5 7h.3M5 9.5h6",
    left: "M2.5 3h11v10h-11zM6.5 3v10",
    bottom: "M2.5 3h11v10h-11zM2.5 9.5h11",
    folds: "M5 5.5l3-3 3 3M5 10.5l3 3 3-3",
    bell: "M4 11V7a4 4 0 018 0v4l1 1H3zM7 14h2",
    plug: "M5.5 2v3.5M10.5 2v3.5M4 5.5h8v2.5a4 4 0 01-8 0zM8 12v2.5",
    wrap: "M2.5 4h11M2.5 8h9a2 2 0 010 4H8M9.5 10.5L8 12l1.5 1.5M2.5 12h3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
    return (
        <svg class="icon" width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor"
            stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
            <path d={PATHS[name]} />
        </svg>
    );
}
