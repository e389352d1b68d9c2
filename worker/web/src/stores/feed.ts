// What the page knows of one open run: its documents, its growing dialog, its connection.

import { signal } from "@preact/signals";
import { ApiError, errorText, getDocument, request } from "../lib/api";
import { Channel } from "../lib/channel";
import { Dialog } from "../lib/dialog";
import { readEntries } from "../lib/entries-stream";
import type { ChangedFile, FeedMessage, Project, Result, Run } from "../protocol";
import { DIFF, FEED_MESSAGE, FILES, PROJECT, RESULT, REVIEW } from "../protocol";

export type FeedState = "connecting" | "ready" | "over" | "error";

export class Feed {
    readonly state = signal<FeedState>("connecting");
    /** Why nothing comes, in words; kept beside what is already shown. */
    readonly trouble = signal<string | null>(null);
    readonly attempts = signal(0);
    readonly sdkVersion = signal<string | null>(null);
    readonly project = signal<Project | null>(null);
    readonly files = signal<readonly ChangedFile[] | null>(null);
    readonly diff = signal<string | null>(null);
    readonly reference = signal<string | null>(null);
    readonly review = signal<string | null>(null);
    readonly result = signal<Result | null>(null);
    readonly dialog = new Dialog();
    /** Grows with each change of `dialog`. */
    readonly dialogBeat = signal(0);
    readonly dialogLoaded = signal(false);
    private channel: Channel<typeof FEED_MESSAGE> | null = null;
    private referenceAsked = false;

    constructor(readonly run: Run) {
        if (run.source === "results") void this.loadFinished();
        else this.channel = new Channel("run data", {
            shape: FEED_MESSAGE,
            path: () => `${this.path("sdk-ws")}?heartbeat=1${this.dialog.lastSeq >= 0 ? `&since=${this.dialog.lastSeq}` : ""}`,
            onMessage: (message) => this.receive(message),
            onClose: (reason) => (this.trouble.value = `Live updates are interrupted: ${reason}`),
            onOpen: () => (this.trouble.value = null),
        });
        void this.loadReview();
    }

    close(): void {
        this.channel?.close();
    }

    private path(document: string): string {
        return `containers/${encodeURIComponent(this.run.id)}/${document}`;
    }

    /** A finished run does not change: plain documents, compressed and cached by the browser. */
    private async loadFinished(): Promise<void> {
        this.state.value = "connecting";
        await Promise.all([
            this.load(getDocument(PROJECT, this.path("project")), (project) => (this.project.value = project)),
            this.load(getDocument(FILES, this.path("files")), ({ files }) => (this.files.value = files)),
            this.load(getDocument(DIFF, this.path("diff")), ({ diff }) => (this.diff.value = diff)),
            this.load(getDocument(RESULT, this.path("result")), (result) => (this.result.value = result)),
            this.load(this.loadDialog(), () => {}),
            this.loadReference(),
        ]);
        this.dialogLoaded.value = true;
        this.state.value = this.trouble.value ? "error" : "over";
    }

    private async load<T>(asked: Promise<T>, use: (document: T) => void): Promise<void> {
        try {
            use(await asked);
        } catch (error) {
            // 404: the run left nothing of this kind.
            if (!(error instanceof ApiError && error.status === 404)) this.trouble.value = errorText(error);
        }
    }

    private async loadDialog(): Promise<void> {
        const response = await request(this.path("agent/dialog"));
        for await (const { entries, rest } of readEntries(response)) this.addDialog(entries, rest.truncated === true);
    }

    /** Every entry as the agent wrote it. */
    async rawEntries(): Promise<unknown[]> {
        const all: unknown[] = [];
        for await (const { entries } of readEntries(await request(this.path("agent/dialog")))) for (const raw of entries) all.push(raw);
        return all;
    }

    async loadReference(): Promise<void> {
        if (this.referenceAsked) return;
        this.referenceAsked = true;
        await this.load(getDocument(DIFF, this.path("reference/patch")), ({ diff }) => (this.reference.value = diff));
    }

    private async loadReview(): Promise<void> {
        await this.load(getDocument(REVIEW, this.path("review")), (review) => {
            if (review.available && review.text) this.review.value = review.text;
        });
    }

    private addDialog(entries: readonly unknown[], truncated: boolean): void {
        const grew = this.dialog.add(entries);
        if (truncated) this.dialog.truncated = true;
        if (grew || truncated) this.dialogBeat.value++;
        this.dialogLoaded.value = true;
    }

    private receive(message: FeedMessage): void {
        switch (message.type) {
        case "status": return this.receiveStatus(message);
        case "project": this.project.value = message.data; return;
        case "files": this.files.value = message.files; return;
        case "diff": this.diff.value = message.diff; return;
        case "dialog": return this.addDialog(message.entries, message.truncated === true);
        case "result": return this.receiveResult(message.result);
        case "error": this.trouble.value = message.error ?? "The server reports an error"; return;
        }
    }

    private receiveStatus(message: Extract<FeedMessage, { type: "status" }>): void {
        if (message.status === "ready") {
            this.state.value = "ready";
            this.trouble.value = null;
            this.sdkVersion.value = message.sdkVersion ?? null;
            void this.loadReference();
        } else if (message.status === "error") {
            this.state.value = "error";
            this.trouble.value = message.error ?? "The run's data cannot be read";
        } else if (this.state.value !== "ready") {
            this.state.value = "connecting";
            this.attempts.value = message.retryAttempt ?? 0;
        }
    }

    private receiveResult(result: Result): void {
        const before = this.result.value?.available;
        this.result.value = result;
        // A run that ended while open may have a reference patch and a note only now.
        if (result.available && before === false) {
            this.referenceAsked = false;
            void this.loadReference();
            void this.loadReview();
        }
    }
}

/** Feeds of open runs by run ID; kept while the run stays in the sidebar, so going back is instant. */
const feeds = new Map<string, Feed>();
const KEEP = 6;

export function feedOf(run: Run): Feed {
    let feed = feeds.get(run.id);
    if (feed && feed.run.source !== run.source) {
        feed.close();
        feed = undefined;
    }
    feeds.delete(run.id);
    feed ??= new Feed(run);
    feeds.set(run.id, feed);
    for (const [id, old] of feeds) {
        if (feeds.size <= KEEP) break;
        old.close();
        feeds.delete(id);
    }
    return feed;
}

export function dropFeed(id: string): void {
    feeds.get(id)?.close();
    feeds.delete(id);
}
