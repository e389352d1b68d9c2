// The run list: the filter stands in the address, pages of rows come as they are looked at.

import { computed, signal } from "@preact/signals";
import { ApiError, errorText, getDocument, locked } from "../lib/api";
import { route, setQuery } from "../lib/route";
import type { Run, RunList } from "../protocol";
import { ONE_RUN, RUN_LIST } from "../protocol";
import { known, openIds, openRunning, recents, remember } from "./opened";

const PAGE = 200;
const REFRESH_MS = 4_000, OPEN_MS = 2_000;

export const FILTERS = ["q", "task", "model", "agent", "status", "grade"] as const;
export type FilterName = (typeof FILTERS)[number];
export const SORTS = ["created", "task", "model", "agent", "status", "grade", "spend", "duration"] as const;
export type SortName = (typeof SORTS)[number];

export interface ListQuery {
    readonly filters: Readonly<Record<FilterName, string>>;
    readonly sort: SortName;
    readonly order: "asc" | "desc";
    /** Only runs opened lately, which the browser knows and the server does not. */
    readonly recent: boolean;
}

export const listQuery = computed<ListQuery>(() => {
    const { query } = route.value;
    const filters = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""])) as Record<FilterName, string>;
    const sort = SORTS.find((name) => name === query.get("sort")) ?? "created";
    return { filters, sort, order: query.get("order") === "asc" ? "asc" : "desc", recent: query.has("recent") };
});

export const setFilter = (name: FilterName, value: string) => setQuery({ [name]: value, recent: undefined });

/** Rows by index; a hole is a row that was not fetched yet. */
export const rows = signal<readonly (Run | undefined)[]>([]);
export const total = signal<number | null>(null);
export const listError = signal<string | null>(null);
export const runnerError = signal<string | null>(null);
export const resultsCut = signal<string | null>(null);
export const loading = signal(false);
/** Values that occurred, to choose from in filters. */
export const seenValues = signal<Readonly<Record<"task" | "model" | "agent", readonly string[]>>>({ task: [], model: [], agent: [] });

/** The whole list of a server that does not page. */
let whole: Run[] | null = null;
let shown = "";
let range = { first: 0, last: 60 };
let asked = 0;

function parameters(query: ListQuery, offset: number, limit: number): string {
    const params = new URLSearchParams({ limit: `${limit}`, offset: `${offset}`, sort: query.sort, order: query.order });
    for (const name of FILTERS) if (query.filters[name]) params.set(name, query.filters[name]);
    return params.toString();
}

function noteValues(runs: readonly Run[]): void {
    const add = (old: readonly string[], values: string[]) => {
        const all = new Set([...old, ...values]);
        return all.size === old.length ? old : [...all].sort();
    };
    const old = seenValues.peek();
    const next = {
        task: add(old.task, runs.map((r) => r.taskId)),
        model: add(old.model, runs.map((r) => r.model)),
        agent: add(old.agent, runs.map((r) => r.agent)),
    };
    if (next.task !== old.task || next.model !== old.model || next.agent !== old.agent) seenValues.value = next;
}

/** Ask for a page of the list as it is filtered now. */
async function fetchPage(query: ListQuery, offset: number, limit: number): Promise<RunList> {
    const answer = await getDocument(RUN_LIST, `containers?${parameters(query, offset, limit)}`);
    remember(answer.containers);
    openRunning(answer.containers);
    noteValues(answer.containers);
    return answer;
}

const FIELDS: Record<SortName, (run: Run) => string | number> = {
    created: (run) => run.startedAt ?? run.createdAt,
    task: (run) => run.taskId,
    model: (run) => run.model,
    agent: (run) => run.agent,
    status: (run) => run.status,
    grade: (run) => run.grade ?? "",
    spend: (run) => run.spend ?? -1,
    duration: (run) => run.durationSeconds ?? -1,
};

export function matches(run: Run, filters: ListQuery["filters"]): boolean {
    const q = filters.q.toLowerCase();
    if (q && ![run.id, run.taskId, run.model, run.agent, run.image].some((text) => text.toLowerCase().includes(q))) return false;
    return (!filters.task || run.taskId === filters.task) && (!filters.model || run.model === filters.model)
        && (!filters.agent || run.agent === filters.agent) && (!filters.status || run.status === filters.status)
        && (!filters.grade || (run.grade ?? "none") === filters.grade);
}

function arrange(all: readonly Run[], query: ListQuery): Run[] {
    const field = FIELDS[query.sort], sign = query.order === "asc" ? 1 : -1;
    return all.filter((run) => matches(run, query.filters)).sort((a, b) => {
        const x = field(a), y = field(b);
        return x < y ? -sign : x > y ? sign : 0;
    });
}

/** Rows of the recent list: what the server still has of the runs opened lately. */
async function loadRecent(query: ListQuery): Promise<void> {
    const answer = await fetchPage({ ...query, filters: { ...query.filters, q: "" } }, 0, 10_000);
    const byId = new Map(answer.containers.map((run) => [run.id, run]));
    rows.value = recents.peek().map((item) => byId.get(item.id)).filter((run) => run !== undefined && matches(run, query.filters));
    total.value = rows.value.length;
}

function place(answer: RunList, offset: number, query: ListQuery, fresh: boolean): void {
    if (answer.total === undefined) {
        whole = answer.containers;
        rows.value = arrange(whole, query);
        total.value = rows.value.length;
        return;
    }
    const next = fresh ? [] : rows.peek().slice(0, answer.total);
    next.length = answer.total;
    answer.containers.forEach((run, i) => (next[offset + i] = run));
    rows.value = next;
    total.value = answer.total;
}

/** Load what is in view. `fresh` drops the rows of another filter or sorting. */
export async function loadRuns(fresh = false): Promise<void> {
    const query = listQuery.peek();
    const key = JSON.stringify(query);
    if (key !== shown) fresh = true;
    shown = key;
    const turn = ++asked;
    loading.value = fresh;
    const offset = fresh ? 0 : Math.max(0, Math.floor((range.first - 20) / PAGE) * PAGE);
    const limit = Math.ceil((Math.max(range.last + 20, offset + 1) - offset) / PAGE) * PAGE;
    try {
        if (query.recent) await loadRecent(query);
        else {
            const answer = await fetchPage(query, offset, Math.max(PAGE, limit));
            if (turn !== asked) return;
            place(answer, offset, query, fresh);
            runnerError.value = answer.runnerError ?? null;
            resultsCut.value = answer.resultsCut ?? null;
        }
        listError.value = null;
    } catch (error) {
        if (turn === asked) listError.value = errorText(error);
    } finally {
        if (turn === asked) loading.value = false;
    }
}

/** The rows that are on the screen; missing ones are fetched. */
export function lookAt(first: number, last: number): void {
    range = { first, last };
    const now = rows.peek();
    for (let i = first; i <= last; i++)
        if (i < now.length && now[i] === undefined) {
            void loadRuns();
            return;
        }
}

/** Keep the list fresh while somebody looks at it; returns how to stop. */
export function watchRuns(): () => void {
    const stopEffect = listQuery.subscribe(() => void loadRuns());
    const timer = setInterval(() => document.hidden || locked.peek() || loadRuns(), REFRESH_MS);
    return () => {
        stopEffect();
        clearInterval(timer);
    };
}

/** True when the open runs that no view listed were asked for. */
export const openAsked = signal(false);

/** Learn about the open runs that no view listed: the newest in one request, older ones by ID. */
export async function learnOpen(): Promise<void> {
    const unknown = () => openIds.peek().filter((id) => !known.peek().has(id));
    try {
        if (unknown().length > 0) remember((await getDocument(RUN_LIST, `containers?limit=${PAGE}&offset=0&sort=created&order=desc`)).containers);
        for (const id of unknown()) await findRun(id);
        openAsked.value = true;
    } catch {
        // The views say what is wrong with the connection.
    }
}

/** Open runs that have not ended are asked for, in a hidden tab too: their end is news. Returns how to stop. */
export function watchOpen(): () => void {
    let busy = false;
    const look = async () => {
        if (busy || locked.peek()) return;
        busy = true;
        for (const id of openIds.peek()) {
            const status = known.peek().get(id)?.status;
            if (status === "running" || status === "created") await findRun(id).catch(() => null);
        }
        busy = false;
    };
    const timer = setInterval(() => void look(), OPEN_MS);
    return () => clearInterval(timer);
}

/** One run by its ID; null when there is none. */
export async function findRun(id: string): Promise<Run | null> {
    try {
        const { container } = await getDocument(ONE_RUN, `containers/${encodeURIComponent(id)}`);
        remember([container]);
        return container;
    } catch (error) {
        if (error instanceof ApiError && (error.status === 404 || error.status === 400)) return null;
        throw error;
    }
}
