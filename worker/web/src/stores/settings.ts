// What the reader chose, kept in this browser.

import { effect, signal } from "@preact/signals";
import { isRecord } from "../lib/shape";

const KEY = "ssebench-settings";
const SIDES = ["top", "bottom", "left", "right"] as const;
export type Side = (typeof SIDES)[number];

export interface Settings {
    theme: "system" | "light" | "dark";
    terminalTheme: "gruvbox" | "dracula" | "solarized";
    terminalFontSize: number;
    terminalCopyOnSelect: boolean;
    terminalScreenReader: boolean;
    anthropicApiKey: string | null;
    centerTabPosition: Side;
    bottomTabPosition: Side;
    notifications: boolean;
    wrapLogs: boolean;
    wrapDiff: boolean;
    showLeft: boolean;
    showBottom: boolean;
    leftWidth: number;
    bottomHeight: number;
    sidebarWidth: number;
}

const DEFAULTS: Settings = {
    theme: "system",
    terminalTheme: "gruvbox",
    terminalFontSize: 14,
    terminalCopyOnSelect: false,
    terminalScreenReader: false,
    anthropicApiKey: null,
    centerTabPosition: "top",
    bottomTabPosition: "top",
    notifications: false,
    wrapLogs: false,
    wrapDiff: false,
    showLeft: true,
    showBottom: true,
    leftWidth: 480,
    bottomHeight: 220,
    sidebarWidth: 232,
};

const CHOICES: Partial<Record<keyof Settings, readonly string[]>> = {
    theme: ["system", "light", "dark"],
    terminalTheme: ["gruvbox", "dracula", "solarized"],
    centerTabPosition: SIDES,
    bottomTabPosition: SIDES,
};

/** Stored values are laid over the defaults where they have the right type. */
function load(): Settings {
    let stored: unknown = null;
    try {
        stored = JSON.parse(localStorage.getItem(KEY) ?? "null");
    } catch {
        // Unreadable or refused: the defaults will do.
    }
    const result: Record<string, unknown> = { ...DEFAULTS };
    if (!isRecord(stored)) return DEFAULTS;
    for (const [name, fallback] of Object.entries(DEFAULTS)) {
        const value = stored[name];
        const choices = CHOICES[name as keyof Settings];
        if (name === "anthropicApiKey" ? typeof value === "string" : typeof value === typeof fallback)
            if (!choices || choices.includes(value as string)) result[name] = value;
    }
    return result as unknown as Settings;
}

export const settings = signal<Settings>(load());

export function change(values: Partial<Settings>): void {
    settings.value = { ...settings.value, ...values };
}

export function startSettings(): void {
    effect(() => {
        const now = settings.value;
        if (now.theme === "system") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = now.theme;
        try {
            localStorage.setItem(KEY, JSON.stringify(now));
        } catch {
            // Refused: the choice holds until the page is left.
        }
    });
}
