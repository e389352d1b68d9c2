// Tells the reader that a run or launch ended while another tab was in front.

import { signal } from "@preact/signals";
import { go } from "../lib/route";
import { settings } from "./settings";

/** Events since the page was last looked at; shown in the title. */
export const unseen = signal(0);

export interface Toast { readonly id: number; readonly title: string; readonly text: string; readonly href: string | null }
export const toasts = signal<readonly Toast[]>([]);
const TOAST_MS = 8_000;
let nextId = 1;

export function dismiss(id: number): void {
    toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

function notifyBrowser(title: string, text: string, href: string | null): void {
    if (!settings.peek().notifications || !("Notification" in window) || Notification.permission !== "granted") return;
    const notification = new Notification(title, { body: text, tag: href ?? title });
    notification.onclick = () => {
        window.focus();
        if (href) go(href);
        notification.close();
    };
}

/** Show `title` in a corner for a while, and to the system when the page is hidden. */
export function note(title: string, text: string, href: string | null = null): void {
    const id = nextId++;
    toasts.value = [...toasts.peek(), { id, title, text, href }].slice(-4);
    setTimeout(() => dismiss(id), TOAST_MS);
    if (!document.hidden) return;
    unseen.value++;
    notifyBrowser(title, text, href);
}

/** Ask for the browser's permission; returns whether notifications are on. */
export async function allowNotifications(): Promise<boolean> {
    if (!("Notification" in window)) return false;
    return (await Notification.requestPermission()) === "granted";
}

export function startNotifications(): void {
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden) unseen.value = 0;
    });
}
