// One entry of an agent's dialog.

import { memo } from "preact/compat";
import { useState } from "preact/hooks";
import type { CompleteEntry, Entry, Row, Tokens, ToolEntry } from "../lib/dialog";
import { argsText, rowText } from "../lib/dialog";
import { lookup } from "../lib/lookup";
import { clock, duration, integer, short } from "../lib/format";
import type { IconName } from "../parts/icons";
import { Icon } from "../parts/icons";
import { Badge, CopyButton } from "../parts/basics";
import { LongText } from "../parts/long-text";
import { Markdown } from "../parts/markdown";

const PROMPT_FIRST = 600;

interface Props {
    row: Row;
    entry: Entry;
    /** Turns of the whole dialog, for its end. */
    turns: number;
    /** Address of this entry. */
    href: string;
    marked: boolean;
    /** Which long parts are open; owned by the list, since rows come and go. */
    open: boolean;
    onToggle: () => void;
}

function TokenCount({ tokens }: { tokens: Tokens }) {
    return <span class="tokens" title={`${integer(tokens.in)} tokens in, ${integer(tokens.out)} out`}>{short(tokens.in)} in · {short(tokens.out)} out</span>;
}

function Head({ icon, title, row, href, children }: { icon: IconName; title: string; row: Row; href: string; children?: preact.ComponentChildren }) {
    const link = () => new URL(href, location.href).href;
    return (
        <header class="entry-head">
            <Icon name={icon} size={14} />
            <span class="entry-title">{title}</span>
            {children}
            <span class="grow" />
            <span class="entry-tools">
                <CopyButton text={() => rowText(row)} label="Copy text" />
                <CopyButton text={link} label="Copy link" icon="link" />
            </span>
            <a class="entry-seq" href={href} title={`Entry ${row.entry.seq}`}>{clock(row.startTs) || `#${row.entry.seq}`}</a>
        </header>
    );
}

function Fold({ label, open, onToggle, children }: { label: string; open: boolean; onToggle: () => void; children: preact.ComponentChildren }) {
    return (
        <div class="fold">
            <button type="button" class="fold-button" aria-expanded={open} onClick={onToggle}><Icon name={open ? "down" : "right"} size={14} />{label}</button>
            {open && <div class="fold-body">{children}</div>}
        </div>
    );
}

/** The one argument that says what a tool does, for a closed row. */
function gist(args: unknown): string {
    if (typeof args !== "object" || args === null) return typeof args === "string" ? args : "";
    const fields = args as Record<string, unknown>;
    const main = fields.command ?? fields.cmd ?? fields.file_path ?? fields.path ?? fields.filePath ?? fields.pattern ?? fields.query ?? fields.url ?? fields.description;
    const text = typeof main === "string" ? main : Array.isArray(main) ? main.join(" ") : "";
    return text.replace(/\s+/g, " ").slice(0, 200);
}

function seconds(row: Row): number | null {
    const s = (Date.parse(row.entry.ts) - Date.parse(row.startTs)) / 1000;
    return Number.isFinite(s) && row.seqs.length > 1 && s >= 0 ? s : null;
}

function ToolBody({ entry, open, onToggle }: { entry: ToolEntry; open: boolean; onToggle: () => void }) {
    const args = argsText(entry.args);
    const name = `entry-${entry.seq}`;
    return (
        <Fold label={open ? "Arguments and result" : gist(entry.args) || "Arguments and result"} open={open} onToggle={onToggle}>
            {args && <><div class="part-name">Arguments</div><LongText text={args} name={`${name}-args.txt`} /></>}
            {entry.result !== null && <><div class="part-name">Result</div><LongText text={entry.result} name={`${name}-result.txt`} /></>}
            {entry.error !== null && <><div class="part-name">Error</div><LongText text={entry.error} name={`${name}-error.txt`} className="bad" /></>}
            {entry.status === "running" && <p class="dim">Still running.</p>}
        </Fold>
    );
}

const TOOL_TONE = { running: "info", success: "ok", error: "bad" } as const;

function Complete({ entry, turns }: { entry: CompleteEntry; turns: number }) {
    const words: Record<string, string> = { success: "Completed", error: "Failed", timeout: "Timed out" };
    return (
        <>
            <dl class="facts">
                <div><dt>Outcome</dt><dd><Badge tone={entry.status === "success" ? "ok" : "bad"}>{lookup(words, entry.status) ?? (entry.status || "Ended")}</Badge></dd></div>
                <div><dt>Turns</dt><dd title={entry.turns !== null && entry.turns !== turns ? `The agent counted ${integer(entry.turns)}` : undefined}>{integer(turns)}</dd></div>
                {entry.durationMs !== null && <div><dt>Time</dt><dd>{duration(entry.durationMs / 1000)}</dd></div>}
                {entry.tokens && <div><dt>Tokens</dt><dd><TokenCount tokens={entry.tokens} /></dd></div>}
            </dl>
            {entry.message && <LongText text={entry.message} name="completion.txt" className="wrap" />}
        </>
    );
}

function body({ row, entry, turns, href, open, onToggle }: Props) {
    switch (entry.type) {
    case "init":
        return (
            <>
                <Head icon="info" title="Start" row={row} href={href} />
                <dl class="facts">
                    {([["Agent", entry.agent], ["Model", entry.model], ["Task", entry.task], ["Directory", entry.cwd]] as const)
                        .filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
                </dl>
            </>
        );
    case "prompt":
        return <><Head icon="chat" title="Prompt" row={row} href={href} /><LongText text={entry.content} name={`entry-${entry.seq}.txt`} first={PROMPT_FIRST} className="wrap prose" /></>;
    case "message":
        return (
            <>
                <Head icon="chat" title={`Turn ${row.turn}`} row={row} href={href}>{entry.tokens && <TokenCount tokens={entry.tokens} />}</Head>
                <Markdown text={entry.content} name={`entry-${entry.seq}.md`} />
            </>
        );
    case "thinking":
        return <><Head icon="minus" title="Thinking" row={row} href={href} /><Fold label={open ? "Hide" : entry.content.replace(/\s+/g, " ").slice(0, 160) || "Show"} open={open} onToggle={onToggle}>
            <LongText text={entry.content} name={`entry-${entry.seq}.txt`} className="wrap prose" /></Fold></>;
    case "tool": {
        const took = seconds(row);
        return (
            <>
                <Head icon="terminal" title={entry.name} row={row} href={href}>
                    <Badge tone={TOOL_TONE[entry.status]}>{entry.status}</Badge>
                    {took !== null && <span class="dim">{duration(took)}</span>}
                </Head>
                <ToolBody entry={entry} open={open} onToggle={onToggle} />
            </>
        );
    }
    case "complete": return <><Head icon="check" title="End" row={row} href={href} /><Complete entry={entry} turns={turns} /></>;
    case "other": return <><Head icon="info" title={entry.name} row={row} href={href} /><LongText text={JSON.stringify(entry.raw, null, 2)} name={`entry-${entry.seq}.json`} /></>;
    }
}

export const DialogRow = memo(function DialogRow(props: Props) {
    return (
        <article class={`entry ${props.entry.type} ${props.marked ? "marked" : ""}`} aria-label={`${props.entry.type} ${props.entry.seq}`} aria-current={props.marked ? "location" : undefined}>
            {body(props)}
        </article>
    );
}, (a, b) => a.entry === b.entry && (a.turns === b.turns || a.entry.type !== "complete") && a.marked === b.marked && a.open === b.open && a.href === b.href);

/** Which rows are open, for a list whose rows come and go. Tools that failed start open. */
export function useOpenRows(): { isOpen: (row: Row) => boolean; toggle: (row: Row) => void; setAll: (open: boolean) => void } {
    const [state, setState] = useState<{ all: boolean | null; changed: ReadonlyMap<number, boolean> }>({ all: null, changed: new Map() });
    const isOpen = (row: Row) => {
        const own = state.changed.get(row.seqs[0]!);
        if (own !== undefined) return own;
        if (state.all !== null) return state.all;
        return row.entry.type === "tool" && row.entry.status !== "success" && !!(row.entry.error ?? "");
    };
    return {
        isOpen,
        toggle: (row) => setState({ all: state.all, changed: new Map(state.changed).set(row.seqs[0]!, !isOpen(row)) }),
        setAll: (open) => setState({ all: open, changed: new Map() }),
    };
}
