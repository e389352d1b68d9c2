// A bar between two areas that is dragged, or moved with the arrow keys.

interface Props {
    label: string;
    /** The bar stands upright and moves sideways, or lies and moves up and down. */
    upright: boolean;
    value: number;
    min: number;
    max: () => number;
    /** +1 when moving right or down makes the area bigger, -1 when it makes it smaller. */
    direction: 1 | -1;
    onChange: (value: number) => void;
}

const STEP = 24;

export function Splitter({ label, upright, value, min, max, direction, onChange }: Props) {
    const set = (next: number) => onChange(Math.round(Math.max(min, Math.min(next, max()))));
    const drag = (event: PointerEvent) => {
        const bar = event.currentTarget as HTMLElement;
        const start = upright ? event.clientX : event.clientY;
        bar.setPointerCapture(event.pointerId);
        const move = (e: PointerEvent) => set(value + ((upright ? e.clientX : e.clientY) - start) * direction);
        const end = () => {
            bar.removeEventListener("pointermove", move);
            bar.removeEventListener("pointerup", end);
        };
        bar.addEventListener("pointermove", move);
        bar.addEventListener("pointerup", end);
        event.preventDefault();
    };
    const key = (event: KeyboardEvent) => {
        const by = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP }[event.key];
        if (!by) return;
        event.preventDefault();
        set(value + by * direction);
    };
    return (
        <div class={`splitter ${upright ? "upright" : "lying"}`} role="separator" tabIndex={0} aria-label={label}
            aria-orientation={upright ? "vertical" : "horizontal"} aria-valuenow={value} aria-valuemin={min} aria-valuemax={max()}
            onPointerDown={drag} onKeyDown={key} />
    );
}
