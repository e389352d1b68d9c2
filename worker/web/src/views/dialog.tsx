// The agent's dialog of one run: reads smoothly at any length, follows the end, searches,
// jumps from error to error.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import type { Row } from "../lib/dialog";
import { rowText } from "../lib/dialog";
import { errorText } from "../lib/api";
import { duration, integer, plural, short } from "../lib/format";
import { bindKey } from "../lib/keys";
import { address, route, setQuery } from "../lib/route";
import { Blank, Button, Notice, SearchField, saveBlob } from "../parts/basics";
import type { ListControl } from "../parts/virtual-list";
import { VirtualList } from "../parts/virtual-list";
import type { Feed } from "../stores/feed";
import { DialogRow, useOpenRows } from "./dialog-row";

const KINDS = [
    { id: "all", label: "All", test: () => true },
    { id: "messages", label: "Messages", test: (row: Row) => row.entry.type !== "tool" && row.entry.type !== "thinking" },
    { id: "tools", label: "Tools", test: (row: Row) => row.entry.type === "tool" },
    { id: "errors", label: "Errors", test: (row: Row) => row.entry.type === "tool" && row.entry.status === "error" },
    { id: "thinking", label: "Thinking", test: (row: Row) => row.entry.type === "thinking" },
] as const;
type Kind = (typeof KINDS)[number]["id"];

/** Rows of one kind, in order; grown as the dialog grows. */
function useRows(feed: Feed, kind: Kind): number[] | null {
    const beat = feed.dialogBeat.value;
    return useMemo(() => {
        if (kind === "all") return null;
        const { test } = KINDS.find((k) => k.id === kind)!;
        return feed.dialog.rows.flatMap((row, i) => (test(row) ? [i] : []));
    }, [beat, kind, feed]);
}

/** Rows that contain `text`; looked for in slices, so that typing stays quick. */
function useHits(feed: Feed, text: string): number[] | null {
    const [hits, setHits] = useState<number[] | null>(null);
    const beat = feed.dialogBeat.value;
    useEffect(() => {
        if (!text) return setHits(null);
        const needle = text.toLowerCase(), found: number[] = [];
        let at = 0, timer = 0;
        const slice = () => {
            const until = performance.now() + 12;
            while (at < feed.dialog.rows.length && performance.now() < until) {
                if (rowText(feed.dialog.rows[at]!).toLowerCase().includes(needle)) found.push(at);
                at++;
            }
            if (at < feed.dialog.rows.length) timer = window.setTimeout(slice);
            else setHits([...found]);
        };
        timer = window.setTimeout(slice, 120);
        return () => clearTimeout(timer);
    }, [text, beat, feed]);
    return hits;
}

function Totals({ feed }: { feed: Feed }) {
    const { dialog } = feed;
    void feed.dialogBeat.value;
    const { turns, tokens, tools, durationMs } = dialog.figures;
    return (
        <span class="dim dialog-totals" title={`${integer(tokens.in)} tokens in, ${integer(tokens.out)} out${dialog.complete?.tokens ? ", as the agent gave them at the end" : ""}`}>
            {plural(turns, "turn")} · {plural(tools, "tool call")}
            {(tokens.in > 0 || tokens.out > 0) && ` · ${short(tokens.in)} / ${short(tokens.out)}`}
            {durationMs !== null && ` · ${duration(durationMs / 1000)}`}
        </span>
    );
}

function Foot({ feed, news, onEnd }: { feed: Feed; news: number; onEnd: () => void }) {
    const { dialog } = feed;
    void feed.dialogBeat.value;
    const over = dialog.complete !== null || feed.state.value === "over" || feed.result.value?.available === true;
    const word = over ? "Session complete" : feed.trouble.value ? "Interrupted" : feed.state.value === "ready" ? (dialog.rows.length ? "Live" : "Waiting for agent...") : "SDK initializing...";
    return (
        <footer class="pane-foot">
            <span class={`live ${over ? "" : "on"}`} role="status"><span class="dot" aria-hidden="true" />{word}</span>
            {dialog.lastSeq >= 0 && <span class="dim">seq: {integer(dialog.lastSeq)}</span>}
            <span class="grow" />
            {news > 0 && <Button kind="quiet" icon="end" label={`${plural(news, "new entry", "new entries")}`} onClick={onEnd} />}
        </footer>
    );
}

/** The entries as the agent wrote them, which the rows are not: a tool's start and end share one. */
async function exportDialog(feed: Feed): Promise<void> {
    const lines: string[] = [];
    for (const raw of await feed.rawEntries()) lines.push(`${JSON.stringify(raw)}\n`);
    saveBlob("dialog.jsonl", new Blob(lines, { type: "application/x-ndjson" }));
}

export function DialogPane({ feed, tab }: { feed: Feed; tab: string }) {
    const { dialog } = feed;
    void feed.dialogBeat.value;
    const kind = useSignal<Kind>("all");
    const search = useSignal("");
    const follow = useSignal(!route.peek().query.has("e") && feed.run.source !== "results");
    const control = useRef<ListControl | null>(null);
    const seen = useRef(0);
    const subset = useRows(feed, kind.value);
    const hits = useHits(feed, search.value);
    const hitAt = useSignal(0);
    const open = useOpenRows();
    const wanted = Number(route.value.query.get("e") ?? NaN);
    const marked = Number.isNaN(wanted) ? -1 : dialog.indexOf(wanted);
    const count = subset ? subset.length : dialog.rows.length;
    const rowAt = (i: number) => dialog.rows[subset ? subset[i]! : i]!;
    const over = dialog.complete !== null || feed.state.value === "over";
    if (follow.value || over || seen.current === 0) seen.current = dialog.rows.length;

    const showRow = (index: number) => {
        if (index < 0) return;
        if (subset && !subset.includes(index)) kind.value = "all";
        follow.value = false;
        queueMicrotask(() => control.current?.show(subset?.includes(index) ? subset.indexOf(index) : index));
    };
    useEffect(() => showRow(marked), [marked, feed]);
    const toHit = (by: number) => {
        if (!hits?.length) return;
        hitAt.value = (hitAt.value + by + hits.length) % hits.length;
        showRow(hits[hitAt.value]!);
    };
    useEffect(() => {
        hitAt.value = 0;
        if (hits?.length) showRow(hits[0]!);
    }, [hits]);
    const jump = (test: (row: Row) => boolean, by: 1 | -1) => {
        const base = marked >= 0 ? marked : subset ? subset[control.current?.first() ?? 0] ?? 0 : (control.current?.first() ?? 0) - (by > 0 ? 1 : 0);
        for (let i = base + by; i >= 0 && i < dialog.rows.length; i += by)
            if (test(dialog.rows[i]!)) return setQuery({ e: dialog.rows[i]!.entry.seq });
    };
    useEffect(() => {
        const bind = (keys: string, what: string, act: () => void) => bindKey(keys, what, "Dialog", act);
        const unbind = [
            bind("j", "Next entry", () => jump(() => true, 1)),
            bind("k", "Previous entry", () => jump(() => true, -1)),
            bind("e", "Next error", () => jump(KINDS[3].test, 1)),
            bind("E", "Previous error", () => jump(KINDS[3].test, -1)),
            bind("t", "Next tool call", () => jump(KINDS[2].test, 1)),
            bind("m", "Next message", () => jump((row) => row.entry.type === "message", 1)),
            bind("g g", "First entry", () => control.current?.show(0)),
            bind("G", "Last entry, and follow", () => control.current?.toEnd()),
        ];
        return () => unbind.forEach((undo) => undo());
    });

    return (
        <section class="pane dialog-pane" aria-label="Agent dialog">
            <div class="pane-head">
                <h2>Dialog</h2><Totals feed={feed} /><span class="grow" />
                <Button kind="quiet" bare icon="alert" label="Next error (e)" disabled={dialog.totals.errors === 0} onClick={() => jump(KINDS[3].test, 1)} />
                <Button kind="quiet" bare icon="down" label="Open all" onClick={() => open.setAll(true)} />
                <Button kind="quiet" bare icon="up" label="Close all" onClick={() => open.setAll(false)} />
                <Button kind="quiet" bare icon="download" label="Save as dialog.jsonl" disabled={count === 0} onClick={() => exportDialog(feed).catch((error: unknown) => (feed.trouble.value = errorText(error)))} />
            </div>
            <div class="pane-tools">
                <SearchField value={search.value} onValue={(v) => (search.value = v)} label="Search the dialog" placeholder="Search"
                    onKeyDown={(event) => { if (event.key === "Enter") toHit(event.shiftKey ? -1 : 1); if (event.key === "Escape") search.value = ""; }}>
                    {search.value && <span class="search-count" role="status">{hits ? `${hits.length ? hitAt.value + 1 : 0}/${hits.length}` : "…"}</span>}
                </SearchField>
                <div class="segments" role="group" aria-label="Which entries">
                    {KINDS.map((k) => <button type="button" key={k.id} class="segment" aria-pressed={kind.value === k.id} onClick={() => (kind.value = k.id)}>{k.label}</button>)}
                </div>
            </div>
            {dialog.truncated && <Notice tone="warn">The server's limit cut this dialog: later entries are missing here.</Notice>}
            {count === 0
                ? <DialogBlank feed={feed} filtered={kind.value !== "all"} />
                : <VirtualList className="entries" count={count} estimate={84} epoch={kind.value} label="Dialog entries" role="feed"
                    follow={follow.value} onFollow={(on) => (follow.value = on)} control={(c) => (control.current = c)}
                    keyOf={(i) => rowAt(i).seqs[0]!}
                    render={(i) => {
                        const row = rowAt(i);
                        return <DialogRow row={row} entry={row.entry} turns={dialog.figures.turns} href={address(["runs", feed.run.id, tab], { e: row.entry.seq })}
                            marked={dialog.rows[marked] === row} open={open.isOpen(row)} onToggle={() => open.toggle(row)} />;
                    }} />}
            <Foot feed={feed} news={follow.value || subset ? 0 : dialog.rows.length - seen.current} onEnd={() => control.current?.toEnd()} />
        </section>
    );
}

function DialogBlank({ feed, filtered }: { feed: Feed; filtered: boolean }) {
    if (filtered) return <Blank title="No entry of this kind" />;
    if (feed.state.value === "error") return <Blank tone="bad" title="Failed to load dialog">{feed.trouble.value}</Blank>;
    if (feed.dialogLoaded.value || feed.state.value === "over") return <Blank title="No dialog yet">{feed.state.value === "over" ? "The agent of this run left none." : ""}</Blank>;
    return <Blank busy title="Loading dialog">{feed.attempts.value > 2 ? "This may take a moment..." : ""}</Blank>;
}
