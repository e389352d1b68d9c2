// The runs that the reader has open (the sidebar) and the ones opened lately, kept in this browser.

import { signal } from "@preact/signals";
import { address } from "../lib/route";
import { isRecord } from "../lib/shape";
import type { Run } from "../protocol";
import { note } from "./notifications";

const OPEN_KEY = "ssebench:openRuns";
const RECENT_KEY = "ssebench:recentContainers";
const RECENT_MAX = 10;
const OPEN_MAX = 50;

export interface Recent { readonly id: string; readonly timestamp: number }

function load(key: string): unknown[] {
    try {
        const value: unknown = JSON.parse(localStorage.getItem(key) ?? "[]");
        return Array.isArray(value) ? value : [];
    } catch {
        return [];
    }
}

function save(key: string, value: unknown): void {
    try {
        localStorage.setItem(key, JSON.stringify(value));
    } catch {
        // Refused: kept in memory only.
    }
}

export const openIds = signal<readonly string[]>(load(OPEN_KEY).filter((id) => typeof id === "string"));
export const recents = signal<readonly Recent[]>(
    load(RECENT_KEY).filter((item): item is Recent => isRecord(item) && typeof item.id === "string" && typeof item.timestamp === "number"));
/** What is known of runs by ID, from whatever listing saw them last. */
export const known = signal<ReadonlyMap<string, Run>>(new Map());
/** Runs closed by hand on this page: they are not opened again by themselves. */
const dismissed = new Set<string>();

export function remember(runs: readonly Run[]): void {
    if (runs.length === 0) return;
    const old = known.peek(), next = new Map(old);
    for (const run of runs) {
        next.set(run.id, run);
        if (hasEnded(old.get(run.id), run))
            note(`Run ended: ${run.taskId}`, `${run.model} · ${run.agent}${run.grade ? ` · ${run.grade}` : ""}`, address(["runs", run.id]));
    }
    known.value = next;
}

function hasEnded(before: Run | undefined, now: Run): boolean {
    const was = before?.status === "running" || before?.status === "created";
    return was && now.status === "exited" && openIds.peek().includes(now.id);
}

export function forget(id: string): void {
    const next = new Map(known.peek());
    next.delete(id);
    known.value = next;
}

/** Put a run into the sidebar and at the head of the recent ones. */
export function openRun(id: string): void {
    addOpen([id]);
    recents.value = [{ id, timestamp: Date.now() }, ...recents.peek().filter((item) => item.id !== id)].slice(0, RECENT_MAX);
    save(RECENT_KEY, recents.value);
}

function addOpen(ids: readonly string[]): void {
    const fresh = ids.filter((id) => !openIds.peek().includes(id));
    if (fresh.length === 0) return;
    openIds.value = [...openIds.peek(), ...fresh].slice(-OPEN_MAX);
    save(OPEN_KEY, openIds.value);
}

/** Running runs appear in the sidebar by themselves, unless they were closed there. */
export function openRunning(runs: readonly Run[]): void {
    addOpen(runs.filter((run) => run.status === "running" && !dismissed.has(run.id)).map((run) => run.id));
}

/** Take a run out of the sidebar; returns the one to show next, or null. */
export function closeRun(id: string): string | null {
    const ids = openIds.peek();
    const at = ids.indexOf(id);
    dismissed.add(id);
    openIds.value = ids.filter((other) => other !== id);
    save(OPEN_KEY, openIds.value);
    return ids[at - 1] ?? openIds.value[0] ?? null;
}
