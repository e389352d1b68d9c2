// One terminal on the screen: xterm.js, its socket, and what may pass between them. Loaded
// when a terminal is first shown.

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { WebLinksAddon } from "@xterm/addon-web-links";
import type { ITheme } from "@xterm/xterm";
import { Terminal } from "@xterm/xterm";
import { signal } from "@preact/signals";
import { copyText } from "../parts/basics";
import type { Settings } from "../stores/settings";
import { request } from "./api";
import type { TerminalMessage } from "../protocol";
import { TERMINAL_MESSAGE } from "../protocol";
import { Channel } from "./channel";

export type TerminalState = "connecting" | "open" | "exited" | "lost" | "error";

const SCROLLBACK_LINES = 10_000;
/** xterm.js takes no more bytes than this unparsed; the socket is not read beyond it. */
const MAX_PENDING = 400_000;
/** How often an existing shell is attached to again by itself, and the pause before each time. */
const REATTACH_MAX = 6;
const REATTACH_MS = 1_000;
/** Another viewer has the shell now: no quarrel about it. */
const CLOSE_TAKEN_OVER = 4001;
/** So much is sent in one frame at most; a bigger paste goes in pieces. */
const INPUT_PIECE = 16_384;

const THEMES: Record<Settings["terminalTheme"], ITheme> = {
    gruvbox: { background: "#282828", foreground: "#ebdbb2", cursor: "#ebdbb2", selectionBackground: "#665c54", black: "#282828", red: "#fb4934", green: "#b8bb26", yellow: "#fabd2f", blue: "#83a598", magenta: "#d3869b", cyan: "#8ec07c", white: "#d5c4a1", brightBlack: "#928374", brightRed: "#fb4934", brightGreen: "#b8bb26", brightYellow: "#fabd2f", brightBlue: "#83a598", brightMagenta: "#d3869b", brightCyan: "#8ec07c", brightWhite: "#fbf1c7" },
    dracula: { background: "#282a36", foreground: "#f8f8f2", cursor: "#f8f8f2", selectionBackground: "#44475a", black: "#21222c", red: "#ff5555", green: "#50fa7b", yellow: "#f1fa8c", blue: "#bd93f9", magenta: "#ff79c6", cyan: "#8be9fd", white: "#f8f8f2", brightBlack: "#6272a4", brightRed: "#ff6e6e", brightGreen: "#69ff94", brightYellow: "#ffffa5", brightBlue: "#d6acff", brightMagenta: "#ff92df", brightCyan: "#a4ffff", brightWhite: "#ffffff" },
    solarized: { background: "#002b36", foreground: "#93a1a1", cursor: "#93a1a1", selectionBackground: "#0a4552", black: "#073642", red: "#dc322f", green: "#859900", yellow: "#b58900", blue: "#268bd2", magenta: "#d33682", cyan: "#2aa198", white: "#eee8d5", brightBlack: "#657b83", brightRed: "#cb4b16", brightGreen: "#93a1a1", brightYellow: "#839496", brightBlue: "#839496", brightMagenta: "#6c71c4", brightCyan: "#93a1a1", brightWhite: "#fdf6e3" },
};

/** What a paste may hold: an escape could end the bracket around it and act as keys. */
export function cleanPaste(text: string): string {
    return text.replace(/\x1b/g, "").replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]/g, "").replace(/\r?\n/g, "\r");
}

interface Size {
    cols: number;
    rows: number;
}

export class TerminalView {
    readonly state = signal<TerminalState>("connecting");
    readonly message = signal("");
    /** A paste of several lines that waits for the reader's word. */
    readonly askPaste = signal<string | null>(null);
    private readonly terminal: Terminal;
    private readonly fit = new FitAddon();
    private readonly finder = new SearchAddon();
    private readonly observer: ResizeObserver;
    private channel: Channel | null = null;
    private pending = 0;
    /** Bytes of old output that still come: queries in them were answered long ago. */
    private replay = 0;
    /** The part of it that xterm.js was not handed yet. */
    private replayToWrite = 0;
    /** The size is the server's word: of old output, or of the window that is looked at. */
    private foreignSize = false;
    /** Somebody else types; this window only looks on. */
    readonly watching = signal(false);
    readonly takenOver = signal(false);
    private reattached = 0;
    private timer = 0;
    /** The server wants to hear how many bytes were shown. */
    private counts = false;
    private waiting: (Uint8Array | Size)[] = [];

    constructor(private readonly place: HTMLElement, private readonly path: string, private readonly sessionKey: string, settings: Settings) {
        this.terminal = new Terminal({
            allowProposedApi: true, cursorStyle: "bar", scrollback: SCROLLBACK_LINES,
            fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), fontSize: settings.terminalFontSize,
            screenReaderMode: settings.terminalScreenReader, theme: THEMES[settings.terminalTheme], linkHandler: { activate: openLink },
        });
        for (const addon of [this.fit, this.finder, new WebLinksAddon(openLink)]) this.terminal.loadAddon(addon);
        this.terminal.loadAddon(new UnicodeGraphemesAddon());
        // A program may not read or set the clipboard: OSC 52 ends here.
        this.terminal.parser.registerOscHandler(52, () => true);
        this.terminal.open(place);
        void this.tryWebgl();
        this.terminal.onData((data) => this.send(data));
        this.terminal.onBinary((data) => this.sendBytes(Uint8Array.from(data, (c) => c.charCodeAt(0))));
        this.terminal.onResize(({ cols, rows }) => this.foreignSize || this.channel?.send(JSON.stringify({ type: "resize", cols, rows })));
        this.terminal.attachCustomKeyEventHandler((event) => this.onKey(event));
        place.addEventListener("paste", this.onPaste, true);
        this.observer = new ResizeObserver(() => this.refit());
        this.observer.observe(place);
        this.refit();
        this.connect(true);
    }

    dispose(): void {
        this.observer.disconnect();
        clearTimeout(this.timer);
        this.place.removeEventListener("paste", this.onPaste, true);
        this.channel?.close();
        this.terminal.dispose();
    }

    focus(): void {
        this.terminal.focus();
    }

    clear(): void {
        this.terminal.clear();
    }

    find(text: string, back: boolean): boolean {
        const options = { caseSensitive: false, incremental: false };
        return back ? this.finder.findPrevious(text, options) : this.finder.findNext(text, options);
    }

    endFind(): void {
        this.finder.clearDecorations();
        this.focus();
    }

    apply(settings: Settings): void {
        this.place.style.background = THEMES[settings.terminalTheme].background ?? "";
        this.terminal.options.fontSize = settings.terminalFontSize;
        this.terminal.options.theme = THEMES[settings.terminalTheme];
        this.terminal.options.screenReaderMode = settings.terminalScreenReader;
        this.copyOnSelect = settings.terminalCopyOnSelect;
        this.refit();
    }

    private selecting: { dispose(): void } | null = null;
    private set copyOnSelect(on: boolean) {
        this.selecting?.dispose();
        this.selecting = on ? this.terminal.onSelectionChange(() => this.terminal.hasSelection() && void copyText(this.terminal.getSelection())) : null;
    }

    /** A new shell; the old one ends on the server when nobody comes back to it. */
    restart(): void {
        const old = this.stored();
        if (old) request(`pty/sessions/${encodeURIComponent(old)}`, { method: "DELETE" }).catch(() => {});
        this.store(null);
        this.watching.value = false;
        this.terminal.reset();
        this.connect(false);
    }

    /** Attach to the same shell again after the connection was lost, or after looking on. */
    reconnect(): void {
        this.reattached = 0;
        this.watching.value = false;
        this.connect(true);
    }

    /** Look at the same shell without taking it away from the window that has it. */
    watch(): void {
        this.reattached = 0;
        this.watching.value = true;
        this.connect(true);
    }

    paste(text: string): void {
        this.askPaste.value = null;
        this.terminal.paste(cleanPaste(text));
        this.focus();
    }

    async copySelection(): Promise<void> {
        if (this.terminal.hasSelection()) await copyText(this.terminal.getSelection());
    }

    private async tryWebgl(): Promise<void> {
        try {
            const { WebglAddon } = await import("@xterm/addon-webgl");
            const addon = new WebglAddon();
            // A lost context falls back to the renderer that needs none.
            addon.onContextLoss(() => addon.dispose());
            this.terminal.loadAddon(addon);
        } catch {
            // No WebGL here: the other renderer is slower and does the same.
        }
    }

    private refit(): void {
        if (this.foreignSize || this.place.clientWidth < 40 || this.place.clientHeight < 30) return;
        this.fit.fit();
    }

    private readonly onPaste = (event: ClipboardEvent): void => {
        const text = event.clipboardData?.getData("text/plain") ?? "";
        event.preventDefault();
        event.stopPropagation();
        if (/[\r\n]./s.test(text.trim())) this.askPaste.value = text;
        else this.paste(text);
    };

    private onKey(event: KeyboardEvent): boolean {
        if (event.type !== "keydown" || !event.ctrlKey || !event.shiftKey) return true;
        if (event.code === "KeyC") {
            void this.copySelection();
            event.preventDefault();
            return false;
        }
        // The browser's own paste follows and comes through onPaste.
        return event.code !== "KeyV";
    }

    private stored(): string | null {
        try {
            return sessionStorage.getItem(this.sessionKey);
        } catch {
            return null;
        }
    }

    private store(id: string | null): void {
        try {
            if (id === null) sessionStorage.removeItem(this.sessionKey);
            else sessionStorage.setItem(this.sessionKey, id);
        } catch {
            // The shell can then not be found again after a reload.
        }
    }

    private connect(resume: boolean): void {
        this.channel?.close();
        clearTimeout(this.timer);
        this.waiting = [];
        this.replay = this.replayToWrite = 0;
        this.ownSize();
        this.state.value = "connecting";
        this.message.value = "";
        const session = resume ? this.stored() : null;
        if (resume && session) this.terminal.reset();
        const query = new URLSearchParams({ mode: "binary", cols: `${this.terminal.cols}`, rows: `${this.terminal.rows}` });
        if (session) query.set("session", session);
        if (session && this.watching.peek()) query.set("view", "1");
        this.channel = new Channel("terminal", {
            once: true,
            shape: TERMINAL_MESSAGE,
            path: () => `${this.path}?${query}`,
            onOpen: () => this.opened(),
            onBytes: (bytes) => this.write(bytes),
            onMessage: (message) => this.receive(message),
            onClose: (reason, code) => this.closed(reason, code),
        });
    }

    private opened(): void {
        if (!this.foreignSize) this.channel?.send(JSON.stringify({ type: "resize", cols: this.terminal.cols, rows: this.terminal.rows }));
    }

    /** Open is what takes keys: not while old output comes, whose queries get no second answer. */
    private openOnceReplayed(): void {
        if (this.state.value !== "connecting" || this.replay > 0) return;
        this.state.value = "open";
        this.reattached = 0;
    }

    private closed(reason: string, code: number): void {
        if (this.state.value === "exited" || this.state.value === "error") return;
        this.state.value = "lost";
        this.takenOver.value = code === CLOSE_TAKEN_OVER;
        this.message.value = code === CLOSE_TAKEN_OVER ? "Another window shows this shell now" : reason;
        // The same shell again, never a new one, is no surprise to anybody.
        if (code !== CLOSE_TAKEN_OVER && this.stored() !== null && this.reattached++ < REATTACH_MAX)
            this.timer = window.setTimeout(() => this.connect(true), REATTACH_MS * this.reattached);
    }

    private receive(message: TerminalMessage): void {
        if (message.type === "session") {
            this.store(message.id);
            this.counts = message.credit === true;
            this.replay = this.replayToWrite = message.replay ?? 0;
            this.openOnceReplayed();
        }
        else if (message.type === "resize") {
            this.waiting.push({ cols: message.cols, rows: message.rows });
            this.pump();
        }
        else if (message.type === "output") this.write(new TextEncoder().encode(message.data));
        else if (message.type === "exit") this.exited(message.code);
        else {
            this.state.value = "error";
            this.message.value = message.message;
            // A session that is gone must not be asked for again.
            this.store(null);
        }
    }

    private exited(code: number): void {
        this.state.value = "exited";
        this.message.value = `Process exited with code ${code}`;
        this.store(null);
    }

    private write(bytes: Uint8Array): void {
        this.waiting.push(bytes);
        this.pump();
    }

    private ownSize(): void {
        this.foreignSize = false;
        this.refit();
    }

    /** Once all before it is on the screen: a size holds for what follows. */
    private takeSize(size: Size): void {
        this.foreignSize = true;
        this.terminal.resize(size.cols, size.rows);
    }

    /** Hand bytes to xterm.js as it takes them, and tell a server that counts how far they are shown. */
    private pump(): void {
        while (this.pending < MAX_PENDING) {
            const next = this.waiting[0];
            const replayed = this.foreignSize && this.replayToWrite === 0 && !this.watching.peek();
            if ((replayed || (next && "cols" in next)) && this.pending > 0) return; // called again when it is zero
            if (replayed) this.ownSize();
            if (!next) return;
            this.waiting.shift();
            if ("cols" in next) {
                this.takeSize(next);
                continue;
            }
            let bytes = next;
            const old = Math.min(this.replayToWrite, bytes.length);
            if (old > 0 && old < bytes.length) {
                this.waiting.unshift(bytes.subarray(old));
                bytes = bytes.subarray(0, old);
            }
            this.replayToWrite -= old;
            const { length } = bytes;
            this.pending += length;
            const { channel } = this;
            this.terminal.write(bytes, () => {
                this.pending -= length;
                if (channel === this.channel) {
                    this.replay = Math.max(0, this.replay - old);
                    this.openOnceReplayed();
                }
                if (this.counts) channel?.send(JSON.stringify({ type: "credit", bytes: length }));
                this.pump();
            });
        }
    }

    private send(text: string): void {
        this.sendBytes(new TextEncoder().encode(text));
    }

    private sendBytes(bytes: Uint8Array): void {
        if (this.state.value !== "open" || this.watching.peek()) return;
        for (let at = 0; at < bytes.length; at += INPUT_PIECE) this.channel?.send(bytes.slice(at, at + INPUT_PIECE));
    }
}

function openLink(_event: MouseEvent, url: string): void {
    if (/^https?:\/\//i.test(url)) window.open(url, "_blank", "noopener,noreferrer");
}
