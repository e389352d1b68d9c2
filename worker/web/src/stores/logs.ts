// The log of one run: lines as they come, bounded, added to the screen once per frame.

import { signal } from "@preact/signals";
import { request } from "../lib/api";
import { Channel } from "../lib/channel";
import type { LogMessage, Run } from "../protocol";
import { LOG_MESSAGE } from "../protocol";

/** Beyond these the oldest lines are dropped from the page; the server's file has all (fetchLog). */
const MAX_LINES = 75_000;
const MAX_CHARACTERS = 15_000_000;
/** Dropped in blocks, so that dropping stays cheap. */
const DROP_LINES = 10_000;
/** A log that runs is drawn no more often than eyes can tell. */
const FLUSH_MS = 100;

export type LogState = "connecting" | "streaming" | "ended" | "error" | "interrupted";

export class Lines {
    lines: string[] = [];
    /** Lines that were dropped from the head. */
    dropped = 0;
    readonly beat = signal(0);
    private characters = 0;
    private waiting: string[] = [];
    private scheduled = false;
    private flushed = -FLUSH_MS;

    push(line: string): void {
        this.waiting.push(line);
        if (this.scheduled) return;
        this.scheduled = true;
        const rest = this.flushed + FLUSH_MS - performance.now();
        if (rest > 0 || document.hidden) setTimeout(this.flush, Math.max(rest, 0));
        else requestAnimationFrame(this.flush);
    }

    /** All lines that ever came. */
    get total(): number {
        return this.dropped + this.lines.length + this.waiting.length;
    }

    clear(): void {
        this.lines = [];
        this.waiting = [];
        this.characters = this.dropped = 0;
        this.beat.value++;
    }

    private readonly flush = (): void => {
        this.scheduled = false;
        this.flushed = performance.now();
        for (const line of this.waiting) {
            this.lines.push(line);
            this.characters += line.length;
        }
        this.waiting = [];
        while (this.lines.length > MAX_LINES || (this.characters > MAX_CHARACTERS && this.lines.length > 1)) this.dropHead();
        this.beat.value++;
    };

    private dropHead(): void {
        const n = Math.min(DROP_LINES, Math.ceil(this.lines.length / 2));
        for (let i = 0; i < n; i++) this.characters -= this.lines[i]!.length;
        this.lines = this.lines.slice(n);
        this.dropped += n;
    }
}

export class RunLog {
    readonly lines = new Lines();
    readonly state = signal<LogState>("connecting");
    readonly exitCode = signal<number | null>(null);
    readonly error = signal<string | null>(null);
    private readonly channel: Channel<typeof LOG_MESSAGE>;
    /** Lines that a new connection repeats before it brings new ones. */
    private repeated = 0;

    constructor(run: Run) {
        this.channel = new Channel("log", {
            shape: LOG_MESSAGE,
            path: () => `containers/${encodeURIComponent(run.id)}/logs-ws?heartbeat=1`,
            onOpen: () => this.begin(),
            onMessage: (message) => this.receive(message),
            onClose: () => this.state.value !== "ended" && (this.state.value = "interrupted"),
        });
    }

    close(): void {
        this.channel.close();
    }

    /** The server replays a log from its start: skip what is already here. */
    private begin(): void {
        this.repeated = this.lines.total;
        if (this.state.value !== "ended") this.state.value = "streaming";
    }

    private receive(message: LogMessage): void {
        if (message.type === "log") {
            if (this.repeated > 0) this.repeated--;
            else this.lines.push(message.data);
        } else if (message.type === "end") {
            this.state.value = "ended";
            this.exitCode.value = message.data.exitCode;
        } else if (message.type === "error") {
            this.state.value = "error";
            this.error.value = message.data.error;
        }
    }
}

/** The whole log as the server has it: of a running run, so far. */
export async function fetchLog(run: Run): Promise<Blob> {
    return (await request(`containers/${encodeURIComponent(run.id)}/logs`)).blob();
}
