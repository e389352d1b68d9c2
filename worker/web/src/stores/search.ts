// Search in the dialogs of all runs: by the server where it can, else here, within a time
// budget and newest run first.

import { signal } from "@preact/signals";
import { ApiError, errorText, getDocument, request } from "../lib/api";
import { readEntry } from "../lib/dialog";
import type { Run, SearchAnswer } from "../protocol";
import { SEARCH } from "../protocol";
import { allRuns, loadAllRuns } from "./all-runs";

export type Hit = SearchAnswer["results"][number];

export interface SearchState { readonly text: string; readonly hits: readonly Hit[]; readonly scanned: number; readonly total: number; readonly busy: boolean; readonly complete: boolean; readonly error: string | null }

const LIMIT = 200;
const BUDGET_MS = 15_000;
const PER_RUN = 20;
const AROUND = 80;

const NOTHING: SearchState = { text: "", hits: [], scanned: 0, total: 0, busy: false, complete: true, error: null };
export const searchState = signal<SearchState>(NOTHING);
let running: AbortController | null = null;

export function excerptOf(text: string, needle: string): string | null {
    const at = text.toLowerCase().indexOf(needle);
    if (at < 0) return null;
    const start = Math.max(0, at - AROUND), end = Math.min(text.length, at + needle.length + AROUND);
    return `${start > 0 ? "…" : ""}${text.slice(start, end).replace(/\s+/g, " ")}${end < text.length ? "…" : ""}`;
}

async function searchRun(run: Run, needle: string, signal: AbortSignal): Promise<Hit[]> {
    const response = await request(`containers/${encodeURIComponent(run.id)}/agent/dialog`, { signal });
    const body = (await response.json()) as { entries?: unknown };
    const hits: Hit[] = [];
    for (const raw of Array.isArray(body.entries) ? body.entries : []) {
        const text = JSON.stringify(raw);
        if (!text.toLowerCase().includes(needle)) continue;
        const entry = readEntry(raw);
        if (!entry) continue;
        const words = Object.values(raw as object).map((value) => (typeof value === "string" ? value : JSON.stringify(value) ?? ""));
        const excerpt = words.map((word) => excerptOf(word, needle)).find((found) => found !== null);
        if (excerpt) hits.push({ id: run.id, taskId: run.taskId, model: run.model, agent: run.agent, seq: entry.seq, type: entry.type, excerpt });
        if (hits.length >= PER_RUN) break;
    }
    return hits;
}

async function searchHere(text: string, signal: AbortSignal): Promise<void> {
    if (!allRuns.peek()) await loadAllRuns();
    const runs = allRuns.peek() ?? [], until = performance.now() + BUDGET_MS, needle = text.toLowerCase();
    let hits: Hit[] = [], scanned = 0;
    for (const run of runs) {
        if (signal.aborted) return;
        if (performance.now() > until || hits.length >= LIMIT) break;
        // A run without a readable dialog has no hits.
        hits = [...hits, ...(await searchRun(run, needle, signal).catch(() => []))];
        scanned++;
        if (!signal.aborted) searchState.value = { text, hits, scanned, total: runs.length, busy: true, complete: false, error: null };
    }
    if (!signal.aborted) searchState.value = { text, hits, scanned, total: runs.length, busy: false, complete: scanned === runs.length, error: null };
}

async function search(text: string, signal: AbortSignal): Promise<void> {
    try {
        const answer = await getDocument(SEARCH, `search?q=${encodeURIComponent(text)}&limit=${LIMIT}`, { signal });
        searchState.value = { text, hits: answer.results, scanned: answer.scanned, total: answer.total, busy: false, complete: answer.complete, error: null };
    } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.status === 404) return searchHere(text, signal);
        throw error;
    }
}

/** Search for `text`; a search that is under way ends. An empty text clears. */
export function startSearch(text: string): void {
    running?.abort();
    running = new AbortController();
    const { signal: stopped } = running;
    if (!text.trim()) {
        searchState.value = NOTHING;
        return;
    }
    searchState.value = { ...NOTHING, text, busy: true, complete: false };
    search(text, stopped).catch((error: unknown) => {
        if (!stopped.aborted) searchState.value = { ...searchState.peek(), busy: false, error: errorText(error) };
    });
}

export const stopSearch = (): void => {
    running?.abort();
    searchState.value = { ...searchState.peek(), busy: false };
};
