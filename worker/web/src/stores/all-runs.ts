// Every run the server lists, for views that count them; fetched page by page.

import { signal } from "@preact/signals";
import { errorText, getDocument } from "../lib/api";
import type { Run } from "../protocol";
import { RUN_LIST } from "../protocol";
import { remember } from "./opened";

const PAGE = 1_000;

export const allRuns = signal<readonly Run[] | null>(null);
export const allRunsError = signal<string | null>(null);
let loading: Promise<void> | null = null;

async function fetchAll(): Promise<Run[]> {
    const runs: Run[] = [];
    for (;;) {
        const answer = await getDocument(RUN_LIST, `containers?limit=${PAGE}&offset=${runs.length}&sort=created&order=desc`);
        runs.push(...answer.containers);
        const total = answer.total ?? runs.length;
        if (runs.length >= total || answer.containers.length === 0) return runs;
    }
}

async function load(): Promise<void> {
    try {
        allRuns.value = await fetchAll();
        remember(allRuns.value);
        allRunsError.value = null;
    } catch (error) {
        allRunsError.value = errorText(error);
    }
}

/** Load the list; calls during a load share it. */
export function loadAllRuns(): Promise<void> {
    loading ??= load().finally(() => (loading = null));
    return loading;
}
