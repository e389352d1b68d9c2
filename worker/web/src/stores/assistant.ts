// The assistant of one run: its sessions, the conversation that is open, what it asks.

import { signal } from "@preact/signals";
import { ApiError, errorText, getDocument, request } from "../lib/api";
import { Channel } from "../lib/channel";
import type { Message, Part, Permission } from "../lib/conversation";
import { providerError, readMessages, readPart, readPermission } from "../lib/conversation";
import { isRecord } from "../lib/shape";
import type { AssistantHealth, AssistantMessage, AssistantSession } from "../protocol";
import { ASSISTANT_HEALTH, ASSISTANT_MESSAGE } from "../protocol";
import { settings } from "./settings";

const STARTING_MS = 2_000;
const SESSIONS_MS = 5_000;

/** What is asked for, and the conversation that asks: the answer goes to that one, whichever is open by then. */
export interface Asked extends Permission { readonly session: string }

export class Assistant {
    readonly health = signal<AssistantHealth | null>(null);
    readonly unavailable = signal<string | null>(null);
    readonly sessions = signal<readonly AssistantSession[] | null>(null);
    readonly sessionsError = signal<string | null>(null);
    /** The open conversation, or null for a new one. */
    readonly session = signal<string | null>(null);
    readonly messages = signal<readonly Message[]>([]);
    /** Parts of the answer that is being written, in the order they began. */
    readonly live = signal<readonly Part[]>([]);
    readonly busy = signal(false);
    readonly retry = signal<string | null>(null);
    readonly error = signal<string | null>(null);
    /** What the server has to say about a new conversation. */
    readonly notice = signal<string | null>(null);
    readonly expired = signal(false);
    readonly permissions = signal<readonly Asked[]>([]);
    /** Kinds of request that are allowed for as long as this conversation is open. */
    private readonly always = new Set<string>();
    private readonly answered = new Set<string>();
    private events: Channel<typeof ASSISTANT_MESSAGE> | null = null;
    /** Counts what was opened: an answer or event from before concerns nothing that is shown now. */
    private visit = 0;
    private timers: number[] = [];
    private closed = false;
    /** An answer is under way as long as our request for it is open, or OpenCode says so. */
    private asking = false;
    private answering = false;
    /** Text of the user's that stands there before the server has it. */
    readonly sending = signal<string | null>(null);

    constructor(private readonly runId: string, private readonly directory: () => string | null) {
        void this.checkHealth();
        void this.loadSessions();
    }

    close(): void {
        this.closed = true;
        this.visit++;
        this.events?.close();
        this.timers.forEach(clearTimeout);
    }

    /** Tells later whether the conversation that is open now still is. */
    private stay(): () => boolean {
        const visit = this.visit;
        return () => visit === this.visit;
    }

    private path(rest: string): string {
        return `containers/${encodeURIComponent(this.runId)}/opencode/${rest}`;
    }

    private later(act: () => void, ms: number): void {
        if (!this.closed) this.timers = [...this.timers.slice(-8), window.setTimeout(act, ms)];
    }

    async checkHealth(): Promise<void> {
        try {
            const health = await getDocument(ASSISTANT_HEALTH, this.path("health"));
            this.health.value = health;
            this.unavailable.value = null;
            if (!health.healthy && health.processRunning) this.later(() => void this.checkHealth(), STARTING_MS);
        } catch (error) {
            this.unavailable.value = errorText(error);
        }
    }

    private async loadSessions(): Promise<void> {
        const directory = this.directory();
        if (directory !== null && !document.hidden) {
            try {
                const body: unknown = await (await request(this.path(`sessions?directory=${encodeURIComponent(directory)}`))).json();
                const raws = Array.isArray(body) ? body : isRecord(body) && Array.isArray(body.sessions) ? body.sessions : [];
                this.sessions.value = raws.filter(isRecord).filter((raw) => typeof raw.id === "string").map(readSession);
                this.sessionsError.value = null;
            } catch (error) {
                this.sessionsError.value = errorText(error);
            }
        }
        this.later(() => void this.loadSessions(), directory === null ? 1_000 : SESSIONS_MS);
    }

    open(id: string | null): void {
        if (id === this.session.value) return;
        this.visit++;
        this.always.clear();
        this.events?.close();
        this.events = null;
        this.session.value = id;
        this.messages.value = [];
        this.live.value = [];
        this.permissions.value = [];
        this.expired.value = false;
        this.setBusy(false, false);
        this.error.value = this.retry.value = this.sending.value = this.notice.value = null;
        if (id === null) return;
        this.listen(id);
        void this.loadMessages();
    }

    private setBusy(asking: boolean, answering: boolean): void {
        this.asking = asking;
        this.answering = answering;
        this.busy.value = asking || answering;
    }

    private listen(id: string): void {
        const query = new URLSearchParams({ sessionId: id, heartbeat: "1" });
        const directory = this.directory();
        if (directory) query.set("directory", directory);
        const here = this.stay();
        this.events?.close();
        this.events = new Channel("assistant", {
            shape: ASSISTANT_MESSAGE,
            path: () => this.path(`events-ws?${query}`),
            onMessage: (message) => here() && this.receive(message, id),
            // What happened while nobody listened is in the stored messages.
            onOpen: () => here() && void this.loadMessages(),
        });
    }

    async loadMessages(): Promise<void> {
        const id = this.session.value, here = this.stay();
        if (id === null) return;
        try {
            const body: unknown = await (await request(this.path(`sessions/${encodeURIComponent(id)}/messages`))).json();
            if (!here()) return;
            this.messages.value = readMessages(body);
            if (!this.busy.value) this.live.value = [];
            const last = this.messages.value.at(-1);
            if (last?.role === "assistant" && last.error) this.error.value = last.error;
        } catch (error) {
            if (here()) this.fail(error, "This session no longer exists. Please start a new conversation.");
        }
    }

    private fail(error: unknown, gone: string): void {
        if (error instanceof ApiError && error.status === 404) {
            this.expired.value = true;
            this.error.value = gone;
        } else this.error.value = errorText(error);
    }

    /** False when the text did not get through and still belongs into the field it came from. */
    async send(text: string): Promise<boolean> {
        const here = this.stay();
        this.error.value = null;
        this.sending.value = text;
        this.setBusy(true, this.answering);
        try {
            const id = this.session.value ?? (await this.create());
            await request(this.path(`sessions/${encodeURIComponent(id)}/messages`), { method: "POST", body: { message: text, ...(this.directory() ? { directory: this.directory() } : {}) } });
            return true;
        } catch (error) {
            if (here()) this.fail(error, "Session expired or no longer exists. Please start a new conversation.");
            return !here();
        } finally {
            if (here()) {
                this.setBusy(false, this.answering);
                this.retry.value = null;
                await this.loadMessages();
            }
            if (here()) {
                this.sending.value = null;
                this.live.value = [];
            }
        }
    }

    /** A new conversation; it is shown unless another was opened meanwhile. */
    private async create(): Promise<string> {
        const here = this.stay();
        const key = settings.peek().anthropicApiKey, directory = this.directory();
        const body = { title: "Debug Session", ...(directory ? { workingDir: directory } : {}), ...(key ? { apiKey: key } : {}) };
        const answer: unknown = await (await request(this.path("sessions"), { method: "POST", body })).json();
        if (!isRecord(answer) || typeof answer.id !== "string") throw new Error("Failed to create session");
        if (here()) {
            this.notice.value = typeof answer.notice === "string" ? answer.notice : null;
            this.session.value = answer.id;
            this.listen(answer.id);
        }
        return answer.id;
    }

    async stop(): Promise<void> {
        const id = this.session.value, here = this.stay();
        if (!id) return;
        try {
            await request(this.path(`sessions/${encodeURIComponent(id)}/abort`), { method: "POST" });
        } catch (error) {
            if (here()) this.error.value = errorText(error);
        }
    }

    async remove(id: string): Promise<void> {
        try {
            await request(this.path(`sessions/${encodeURIComponent(id)}`), { method: "DELETE" });
            this.sessions.value = (this.sessions.value ?? []).filter((session) => session.id !== id);
            if (this.session.value === id) this.open(null);
        } catch (error) {
            this.error.value = errorText(error);
        }
    }

    private receive(message: AssistantMessage, session: string): void {
        const data = "data" in message && isRecord(message.data) ? message.data : {};
        const properties = isRecord(data.properties) ? data.properties : {};
        switch (message.type) {
        case "message.part.updated": return this.receivePart(properties.part);
        case "message.updated": if (isRecord(properties.info) && isRecord(properties.info.time) && properties.info.time.end) void this.loadMessages(); return;
        case "session.status": return this.receiveStatus(properties.status);
        case "session.error": this.error.value = providerError(properties.error) ?? this.error.value; return;
        case "permission.asked": case "permission.updated": return this.receivePermission(properties, session);
        case "permission.replied": this.dropPermission(String(properties.permissionID ?? properties.requestID ?? "")); return;
        }
    }

    private receivePart(raw: unknown): void {
        const part = readPart(raw);
        if (!part || !this.busy.value) return;
        // The user's own message comes back as a part too.
        if (part.kind === "text" && part.text === this.sending.value) return;
        const at = this.live.value.findIndex((old) => old.id === part.id && old.kind === part.kind);
        this.live.value = at < 0 ? [...this.live.value, part] : this.live.value.map((old, i) => (i === at ? part : old));
    }

    private receiveStatus(status: unknown): void {
        const type = isRecord(status) ? status.type : status;
        if (type === "busy" || type === "retry" || type === "idle") this.setBusy(this.asking, type !== "idle");
        this.retry.value = type === "retry" && isRecord(status)
            ? `Waiting for the model provider: ${String(status.message ?? "")} (attempt ${String(status.attempt ?? "?")})` : null;
    }

    private receivePermission(properties: Record<string, unknown>, session: string): void {
        const read = readPermission(properties);
        if (!read || this.answered.has(read.id) || this.permissions.value.some((p) => p.id === read.id)) return;
        const permission = { ...read, session };
        this.permissions.value = [...this.permissions.value, permission];
        if (this.always.has(permission.type)) void this.reply(permission, true);
    }

    private dropPermission(id: string): void {
        this.permissions.value = this.permissions.value.filter((permission) => permission.id !== id);
    }

    /** Answer a request; `always` allows later ones of that kind while this conversation is open. */
    async reply(permission: Asked, allow: boolean, always = false): Promise<void> {
        const here = this.stay(), asker = permission.session === this.session.value;
        this.answered.add(permission.id);
        this.dropPermission(permission.id);
        if (always && asker) this.always.add(permission.type);
        try {
            await request(this.path(`sessions/${encodeURIComponent(permission.session)}/permissions/${encodeURIComponent(permission.id)}`), { method: "POST", body: always ? { allow, response: "always" } : { allow } });
        } catch (error) {
            if (asker && here()) this.error.value = errorText(error);
        }
        if (always && asker && here()) for (const other of this.permissions.value.filter((p) => p.type === permission.type)) void this.reply(other, true);
    }
}

function readSession(raw: Record<string, unknown>): AssistantSession {
    const s = isRecord(raw.summary) ? raw.summary : null;
    const n = (value: unknown) => (typeof value === "number" ? value : 0);
    return {
        id: String(raw.id), title: typeof raw.title === "string" && raw.title ? raw.title : "New conversation",
        summary: s ? { files: n(s.files), additions: n(s.additions), deletions: n(s.deletions) } : null,
    };
}

/** By run ID: who looks at it, and when it is given up. */
const held = new Map<string, { readonly assistant: Assistant; timer: number }>();
/** Another width of the window builds the view anew; the conversation outlives that. */
const RELEASE_MS = 1_000;

export function holdAssistant(runId: string, directory: () => string | null): Assistant {
    const entry = held.get(runId) ?? { assistant: new Assistant(runId, directory), timer: 0 };
    clearTimeout(entry.timer);
    held.set(runId, entry);
    return entry.assistant;
}

export function releaseAssistant(runId: string): void {
    const entry = held.get(runId);
    if (!entry) return;
    entry.timer = window.setTimeout(() => {
        held.delete(runId);
        entry.assistant.close();
    }, RELEASE_MS);
}
