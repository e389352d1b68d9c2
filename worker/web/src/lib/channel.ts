// A WebSocket that stays: it reconnects with back-off, watches the server's heartbeat, and
// looks again when the tab or the network comes back.

import { signal } from "@preact/signals";
import { isStatic } from "./route";
import type { Shape, TypeOf } from "./shape";
import { isRecord, misfit } from "./shape";
import { staticMessages } from "./static-site";
import { locked, request, socketProtocols, socketUrl, token } from "./api";

const BACKOFF_MS = [300, 1000, 2000, 4000, 8000, 15_000];
/** Heartbeats that may be missing before the connection counts as dead. */
const MISSED_BEATS = 3;
/** The server closes with it when the token was revoked, changed or has expired. */
const TOKEN_GONE = 4401;

export type ChannelState = "connecting" | "open" | "waiting" | "closed";

export interface ChannelInfo {
    readonly name: string;
    state: ChannelState;
    /** When the last message came (ms), or 0. */
    lastMessage: number;
    reconnects: number;
    /** What the last close said. */
    reason: string;
}

/** All channels of the page, for the connection indicator. */
export const channels = signal<readonly ChannelInfo[]>([]);
const live = new Set<Channel>();

function publish(): void {
    channels.value = [...live].map((channel) => ({ ...channel.info }));
}

export interface ChannelUse<S> {
    /** What the server may send; anything else is dropped. */
    shape: S;
    /** Path below api/ for the next connection; asked anew each time, so it can name where to resume. */
    path: () => string;
    onMessage: (message: TypeOf<S>) => void;
    onOpen?: () => void;
    /** Binary frames, where the protocol has them. */
    onBytes?: (bytes: Uint8Array) => void;
    /** A terminal is never restarted silently: no reconnect on its own. */
    once?: boolean;
    onClose?: (reason: string, code: number) => void;
}

export class Channel<S extends { readonly kind: string } = { readonly kind: string }> {
    readonly info: ChannelInfo;
    private socket: WebSocket | null = null;
    private attempts = 0;
    private timer = 0;
    private beatMs = 0;
    private opened = false;

    constructor(name: string, private readonly use: ChannelUse<S>) {
        this.info = { name, state: "closed", lastMessage: 0, reconnects: 0, reason: "" };
        live.add(this);
        this.connect();
    }

    send(data: string | Uint8Array): boolean {
        if (this.socket?.readyState !== WebSocket.OPEN) return false;
        this.socket.send(data as string | Uint8Array<ArrayBuffer>);
        return true;
    }

    /** Bytes that wait in the browser for the network. */
    get buffered(): number {
        return this.socket?.bufferedAmount ?? 0;
    }

    close(): void {
        clearTimeout(this.timer);
        this.drop();
        live.delete(this);
        this.info.state = "closed";
        publish();
    }

    /** The page woke up: try at once, and do not trust a socket that was silent for too long. */
    wake(): void {
        if (this.info.state === "waiting") {
            this.attempts = 0;
            this.connect();
        } else if (this.info.state === "open") this.checkBeat();
    }

    checkBeat(): void {
        if (this.beatMs && Date.now() - this.info.lastMessage > this.beatMs * MISSED_BEATS)
            this.lost("the server has been silent for too long");
    }

    private set(state: ChannelState): void {
        this.info.state = state;
        publish();
    }

    private drop(): void {
        const socket = this.socket;
        this.socket = null;
        if (!socket) return;
        socket.onopen = socket.onmessage = socket.onclose = null;
        socket.close();
    }

    private connect(): void {
        if (isStatic) return void this.replay();
        clearTimeout(this.timer);
        this.drop();
        this.opened = false;
        // Without a token it would only be refused; the one that is entered wakes all channels.
        if (locked.peek()) return this.set("waiting");
        this.set("connecting");
        const socket = new WebSocket(socketUrl(this.use.path()), socketProtocols());
        socket.binaryType = "arraybuffer";
        this.socket = socket;
        socket.onopen = () => this.onOpen();
        socket.onmessage = (event) => this.onMessage(event.data as string | ArrayBuffer);
        socket.onclose = (event) => this.lost(event.reason || (event.code === 1006 ? "the connection broke" : `closed (${event.code})`), event.code);
    }

    /** A static site has no sockets: what it kept comes at once. */
    private async replay(): Promise<void> {
        this.set("open");
        this.use.onOpen?.();
        for (const message of await staticMessages(this.use.path())) this.deliver(message);
    }

    private onOpen(): void {
        this.opened = true;
        this.info.lastMessage = Date.now();
        this.set("open");
        this.use.onOpen?.();
    }

    private onMessage(data: string | ArrayBuffer): void {
        this.info.lastMessage = Date.now();
        this.attempts = 0;
        if (typeof data !== "string") return this.use.onBytes?.(new Uint8Array(data));
        let message: unknown;
        try {
            message = JSON.parse(data);
        } catch {
            return;
        }
        if (!isRecord(message)) return;
        if (message.type === "heartbeat") this.beatMs = typeof message.intervalMs === "number" ? message.intervalMs : 20_000;
        else this.deliver(message);
    }

    /** New types of a newer server are no error; a known one that is not as described is dropped too. */
    private deliver(message: Record<string, unknown>): void {
        const wrong = misfit(this.use.shape as unknown as Shape, message, this.info.name);
        if (wrong) console.warn(`A message is not as described: ${wrong}`);
        else this.use.onMessage(message as TypeOf<S>);
    }

    private lost(reason: string, code = 1006): void {
        this.drop();
        this.info.reason = reason;
        this.use.onClose?.(reason, code);
        if (this.use.once) return this.set("closed");
        if (!this.opened || code === TOKEN_GONE) void this.askWhy();
        const wait = BACKOFF_MS[Math.min(this.attempts++, BACKOFF_MS.length - 1)]!;
        this.info.reconnects++;
        this.set("waiting");
        // While a token is asked for, trying the old one again would only count as guessing.
        this.timer = window.setTimeout(() => locked.value || this.connect(), wait * (0.75 + Math.random() / 2));
    }

    /** The browser hides the status of a refused handshake; a plain request shows it (401 locks). */
    private async askWhy(): Promise<void> {
        try {
            await request("health");
        } catch {
            // No server at all: the back-off goes on.
        }
    }
}

function wakeAll(): void {
    if (document.visibilityState === "hidden") return;
    for (const channel of live) channel.wake();
}

export function startChannels(): void {
    document.addEventListener("visibilitychange", wakeAll);
    addEventListener("online", wakeAll);
    addEventListener("pageshow", wakeAll);
    setInterval(() => live.forEach((channel) => channel.checkBeat()), 5000);
    token.subscribe(() => wakeAll());
    locked.subscribe((is) => is || wakeAll());
}
