// Keys that work wherever the reader is, unless a field is being typed into.

import { signal } from "@preact/signals";

export interface KeyHelp { readonly keys: string; readonly what: string; readonly where: string }

type Handler = (event: KeyboardEvent) => void;
const handlers = new Map<string, Handler[]>();
const helps = new Map<string, KeyHelp>();

/** The list of keys is shown. */
export const helpOpen = signal(false);

/** Bind `key` ("j", "g g", "?") until the returned function is called; the newest binding wins. */
export function bindKey(keys: string, what: string, where: string, handler: Handler): () => void {
    const list = handlers.get(keys) ?? [];
    handlers.set(keys, [...list, handler]);
    helps.set(`${where}/${keys}`, { keys, what, where });
    return () => handlers.set(keys, (handlers.get(keys) ?? []).filter((h) => h !== handler));
}

export function keyHelp(): KeyHelp[] {
    return [...helps.values()].filter((help) => (handlers.get(help.keys) ?? []).length > 0);
}

function typing(target: EventTarget | null): boolean {
    const element = target as HTMLElement | null;
    return !!element?.closest?.("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable], .xterm");
}

let prefix = "";
let prefixTimer = 0;

function onKey(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    const run = (keys: string) => {
        const handler = handlers.get(keys)?.at(-1);
        if (!handler) return false;
        event.preventDefault();
        handler(event);
        return true;
    };
    clearTimeout(prefixTimer);
    const both = prefix ? `${prefix} ${event.key}` : "";
    prefix = "";
    if (both && run(both)) return;
    if ([...handlers].some(([keys, list]) => keys.startsWith(`${event.key} `) && list.length > 0)) {
        prefix = event.key;
        prefixTimer = window.setTimeout(() => (prefix = ""), 800);
        return;
    }
    run(event.key);
}

/** "/" goes to the search field of what is shown. */
function toSearch(): void {
    const fields = [...document.querySelectorAll<HTMLInputElement>("input[data-search]")];
    const field = fields.filter((f) => f.offsetParent !== null).at(0);
    field?.focus();
    field?.select();
}

export function startKeys(): void {
    document.addEventListener("keydown", onKey);
    bindKey("/", "Search", "Everywhere", toSearch);
    bindKey("?", "This list", "Everywhere", () => (helpOpen.value = true));
}
