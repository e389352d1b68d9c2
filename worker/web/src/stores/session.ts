// The session: what the server says about itself, and whether this tab may use it.

import { computed, signal } from "@preact/signals";
import { ApiError, errorText, getDocument, keepToken, locked, token } from "../lib/api";
import type { Health } from "../protocol";
import { HEALTH } from "../protocol";

const HEALTH_EVERY_MS = 30_000;
/** While the server does not answer it is asked more often. */
const HEALTH_AGAIN_MS = 3_000;

export const health = signal<Health | null>(null);
/** Why the last health request failed, or null. */
export const healthError = signal<string | null>(null);
export const roundTripMs = signal<number | null>(null);
/** The page waits for the first answer before it shows anything. */
export const started = signal(false);

/** Nothing may be changed: a hosted server, or a token that may only view. */
export const isHosted = computed(() => health.value?.hosted === true);
/** What the token of this tab may do, where the server tells: view, operate, full. */
export const role = computed(() => health.value?.role ?? null);
export const ROLE_TEXT: Record<string, string> = {
    view: "look at runs, and change nothing",
    operate: "launch, stop and remove runs; no terminal and no assistant",
    full: "do everything",
};
export const hasTerminal = computed(() => health.value?.terminal !== false && !isHosted.value);
export const hasAssistant = computed(() => health.value?.assistant !== false && !isHosted.value);

let timer = 0;

/** Ask for the server's health now; never throws. */
export async function checkHealth(): Promise<void> {
    clearTimeout(timer);
    const start = performance.now();
    try {
        health.value = await getDocument(HEALTH, "health");
        roundTripMs.value = performance.now() - start;
        healthError.value = null;
        locked.value = false;
    } catch (error) {
        if (!(error instanceof ApiError && error.status === 401)) healthError.value = errorText(error);
    }
    started.value = true;
    timer = window.setTimeout(checkHealth, healthError.value ? HEALTH_AGAIN_MS : HEALTH_EVERY_MS);
}

/** Try a token; returns the text for the reader when it is refused. */
export async function submitToken(text: string): Promise<string | null> {
    keepToken(text.trim());
    try {
        health.value = await getDocument(HEALTH, "health");
        healthError.value = null;
    } catch (error) {
        if (error instanceof ApiError && error.status === 401) {
            keepToken(null);
            return "The server rejected this token.";
        }
        if (error instanceof ApiError && error.status === 429) {
            keepToken(null);
            return errorText(error);
        }
        healthError.value = errorText(error);
    }
    locked.value = false;
    return null;
}

/** Forget the token of this tab, and with the page all that was connected and shown under it. */
export function signOut(): void {
    keepToken(null);
    location.reload();
}

export const canSignOut = computed(() => token.value !== null);
