// An agent's dialog: reads entries that the agent wrote (any field may be missing or wrong)
// and folds them into the rows a reader sees.

import { isRecord } from "./shape";

export interface Tokens { readonly in: number; readonly out: number }

export type Entry = { readonly seq: number; readonly ts: string } & (
    | { readonly type: "init"; readonly task: string; readonly cwd: string; readonly model: string; readonly agent: string }
    | { readonly type: "prompt"; readonly content: string }
    | { readonly type: "message"; readonly content: string; readonly tokens: Tokens | null }
    | { readonly type: "thinking"; readonly content: string }
    | {
        readonly type: "tool"; readonly toolId: string; readonly name: string;
        readonly status: "running" | "success" | "error";
        readonly args: unknown; readonly result: string | null; readonly error: string | null;
    }
    | {
        readonly type: "complete"; readonly status: string; readonly turns: number | null;
        readonly durationMs: number | null; readonly tokens: Tokens | null; readonly message: string | null;
    }
    | { readonly type: "other"; readonly name: string; readonly raw: unknown });

export type ToolEntry = Extract<Entry, { type: "tool" }>;
export type CompleteEntry = Extract<Entry, { type: "complete" }>;

/** A row: an entry, for a tool the end laid over its start; `turn` counts assistant messages. */
export interface Row {
    entry: Entry;
    /** When the tool started; the same as entry.ts for all other rows. */
    startTs: string;
    turn: number;
    /** Every sequence number that this row stands for. */
    seqs: number[];
}

const text = (value: unknown): string =>
    typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2) ?? "";
const textOrNull = (value: unknown): string | null => (value === undefined || value === null ? null : text(value));
const count = (value: unknown): number | null => (typeof value === "number" && Number.isFinite(value) ? value : null);

function tokensOf(value: unknown): Tokens | null {
    if (!isRecord(value)) return null;
    const tokens = { in: count(value.in), out: count(value.out) };
    return tokens.in === null && tokens.out === null ? null : { in: tokens.in ?? 0, out: tokens.out ?? 0 };
}

/** The entry in `raw`, or null when it has no usable sequence number. */
export function readEntry(raw: unknown): Entry | null {
    if (!isRecord(raw) || typeof raw.seq !== "number" || !Number.isFinite(raw.seq)) return null;
    const head = { seq: raw.seq, ts: typeof raw.ts === "string" ? raw.ts : "" };
    switch (raw.type) {
    case "init": {
        const data = isRecord(raw.data) ? raw.data : {};
        return { ...head, type: "init", task: text(data.task), cwd: text(data.cwd), model: text(data.model), agent: text(data.agent) };
    }
    case "prompt": return { ...head, type: "prompt", content: text(raw.content) };
    case "message": return { ...head, type: "message", content: text(raw.content), tokens: tokensOf(raw.tokens) };
    case "thinking": return { ...head, type: "thinking", content: text(raw.content) };
    case "tool": return readTool(head, raw);
    case "complete":
        return {
            ...head, type: "complete", status: text(raw.status), turns: count(raw.turns),
            durationMs: count(raw.duration_ms), tokens: tokensOf(raw.total_tokens), message: textOrNull(raw.message),
        };
    default: return { ...head, type: "other", name: text(raw.type) || "entry", raw };
    }
}

function readTool(head: { seq: number; ts: string }, raw: Record<string, unknown>): ToolEntry {
    const status = raw.status === "success" || raw.status === "error" ? raw.status : "running";
    return {
        ...head, type: "tool", toolId: text(raw.tool_id), name: text(raw.name) || "tool", status,
        args: raw.args, result: textOrNull(raw.result), error: textOrNull(raw.error),
    };
}

export interface Totals {
    in: number;
    out: number;
    messages: number;
    tools: number;
    errors: number;
}

/** A growing dialog. Entries may come again after a reconnect; each `seq` counts once. */
export class Dialog {
    readonly rows: Row[] = [];
    readonly totals: Totals = { in: 0, out: 0, messages: 0, tools: 0, errors: 0 };
    lastSeq = -1;
    truncated = false;
    complete: CompleteEntry | null = null;
    init: Extract<Entry, { type: "init" }> | null = null;
    private readonly rowOfSeq = new Map<number, number>();
    private readonly rowOfTool = new Map<string, number>();
    private turn = 0;

    /** Add what the server sent; returns whether anything was new. */
    add(raws: readonly unknown[]): boolean {
        let grew = false;
        for (const raw of raws) {
            const entry = readEntry(raw);
            if (!entry || this.rowOfSeq.has(entry.seq)) continue;
            this.addEntry(entry);
            grew = true;
        }
        return grew;
    }

    /**
     * The numbers that every view shows. Turns are counted, as their headings are: agents count
     * differently (tool results, retries). Tokens and time are the agent's own where it gave them.
     */
    get figures(): { turns: number; tools: number; errors: number; tokens: Tokens; durationMs: number | null } {
        const { totals, complete } = this;
        return {
            turns: totals.messages, tools: totals.tools, errors: totals.errors,
            tokens: complete?.tokens ?? totals, durationMs: complete?.durationMs ?? null,
        };
    }

    /** The row that shows the entry `seq`, or -1. */
    indexOf(seq: number): number {
        return this.rowOfSeq.get(seq) ?? -1;
    }

    private addEntry(entry: Entry): void {
        this.lastSeq = Math.max(this.lastSeq, entry.seq);
        if (entry.type === "message") this.countMessage(entry.tokens);
        if (entry.type === "complete") this.complete = entry;
        if (entry.type === "init") this.init = entry;
        const started = entry.type === "tool" && entry.toolId ? this.rowOfTool.get(entry.toolId) : undefined;
        const index = entry.type === "tool" && started !== undefined && this.finishTool(started, entry)
            ? started : this.append(entry);
        this.rowOfSeq.set(entry.seq, index);
        if (entry.type === "tool" && entry.status === "error") this.totals.errors++;
    }

    private countMessage(tokens: Tokens | null): void {
        this.turn++;
        this.totals.messages++;
        this.totals.in += tokens?.in ?? 0;
        this.totals.out += tokens?.out ?? 0;
    }

    private append(entry: Entry): number {
        this.rows.push({ entry, startTs: entry.ts, turn: this.turn, seqs: [entry.seq] });
        if (entry.type === "tool") {
            this.totals.tools++;
            if (entry.toolId) this.rowOfTool.set(entry.toolId, this.rows.length - 1);
        }
        return this.rows.length - 1;
    }

    /** Lay the end of a tool over its start; false when that row is finished already. */
    private finishTool(index: number, end: ToolEntry): boolean {
        const row = this.rows[index];
        if (!row || row.entry.type !== "tool" || row.entry.status !== "running") return false;
        row.entry = { ...end, seq: row.entry.seq, args: end.args ?? row.entry.args };
        row.seqs.push(end.seq);
        return true;
    }
}

/** Plain text of a row, for search and copying. */
export function rowText(row: Row): string {
    const { entry } = row;
    switch (entry.type) {
    case "init": return `${entry.agent} ${entry.model} ${entry.task} ${entry.cwd}`;
    case "prompt": case "message": case "thinking": return entry.content;
    case "tool": return `${entry.name}\n${argsText(entry.args)}\n${entry.result ?? ""}\n${entry.error ?? ""}`;
    case "complete": return entry.message ?? entry.status;
    case "other": return JSON.stringify(entry.raw);
    }
}

export function argsText(args: unknown): string {
    if (args === undefined || args === null) return "";
    return typeof args === "string" ? args : JSON.stringify(args, null, 2);
}
