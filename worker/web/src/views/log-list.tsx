// Lines of a log: colours and carriage returns are shown, nothing in them acts.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { ansiSpans, plainText } from "../lib/ansi";
import { integer, plural } from "../lib/format";
import { Blank, Button, SearchField } from "../parts/basics";
import type { ListControl } from "../parts/virtual-list";
import { VirtualList } from "../parts/virtual-list";
import { change, settings } from "../stores/settings";
import type { Lines } from "../stores/logs";

/** A line longer than this is shown to here; copying and saving have all of it. */
const LINE_MAX = 20_000;

function tone(line: string): string {
    if (line.includes("[ssebench]")) return "own";
    if (/ERROR|error:/.test(line)) return "bad";
    if (/WARNING|warning:/.test(line)) return "warn";
    if (/INFO|Starting/.test(line)) return "good";
    return line.startsWith("#") ? "dim" : "";
}

function LogLine({ text, number, hit }: { text: string; number: number; hit: boolean }) {
    const spans = ansiSpans(text.length > LINE_MAX ? text.slice(0, LINE_MAX) : text);
    return (
        <div class={`log-line ${hit ? "hit" : ""} ${text.includes("\x1b[") ? "" : tone(text)}`}>
            <span class="log-number" aria-hidden="true">{number}</span>
            <span class="log-text">
                {spans.length === 0 ? " " : spans.map((span, i) => (span.className ? <span key={i} class={span.className}>{span.text}</span> : span.text))}
                {text.length > LINE_MAX && <span class="dim"> … {integer(text.length - LINE_MAX)} more characters</span>}
            </span>
        </div>
    );
}

function useLogHits(lines: Lines, text: string): number[] | null {
    const [hits, setHits] = useState<number[] | null>(null);
    const beat = text ? lines.beat.value : 0;
    const done = useRef({ text: "", at: 0, dropped: 0, found: [] as number[] });
    useEffect(() => {
        if (!text) return setHits(null);
        const needle = text.toLowerCase();
        const state = done.current;
        if (state.text !== text || state.dropped !== lines.dropped) done.current = { text, at: 0, dropped: lines.dropped, found: [] };
        let timer = 0;
        const slice = () => {
            const now = done.current, until = performance.now() + 10;
            while (now.at < lines.lines.length && performance.now() < until) {
                if (plainText(lines.lines[now.at]!).toLowerCase().includes(needle)) now.found.push(now.at);
                now.at++;
            }
            if (now.at < lines.lines.length) timer = window.setTimeout(slice);
            else setHits([...now.found]);
        };
        timer = window.setTimeout(slice, 100);
        return () => clearTimeout(timer);
    }, [text, beat, lines]);
    return hits;
}

interface Props {
    lines: Lines;
    label: string;
    state: preact.ComponentChildren;
    empty: preact.ComponentChildren;
    onSave: () => void;
    saving?: boolean;
    notice?: preact.ComponentChildren;
}

export function LogList({ lines, label, state, empty, onSave, saving = false, notice }: Props) {
    void lines.beat.value;
    const search = useSignal("");
    const follow = useSignal(true);
    const hitAt = useSignal(0);
    const control = useRef<ListControl | null>(null);
    const hits = useLogHits(lines, search.value);
    const isHit = useMemo(() => new Set(hits ?? []), [hits]);
    const count = lines.lines.length;
    const { wrapLogs } = settings.value;
    const toHit = (by: number) => {
        if (!hits?.length) return;
        hitAt.value = (hitAt.value + by + hits.length) % hits.length;
        follow.value = false;
        control.current?.show(hits[hitAt.value]!);
    };
    return (
        <div class="pane logs">
            <div class="pane-tools">
                {state}
                <span class="dim">{plural(lines.dropped + count, "line")}{lines.dropped > 0 && `, the last ${integer(count)} here`}</span>
                <SearchField value={search.value} onValue={(v) => { search.value = v; hitAt.value = 0; }} label={`Search ${label.toLowerCase()}`} placeholder="Search"
                    onKeyDown={(event) => { if (event.key === "Enter") toHit(event.shiftKey ? -1 : 1); if (event.key === "Escape") search.value = ""; }}>
                    {search.value && <span class="search-count" role="status">{hits ? `${hits.length ? hitAt.value + 1 : 0}/${hits.length}` : "…"}</span>}
                </SearchField>
                <span class="grow" />
                <span class="button-row">
                <Button kind="quiet" bare icon="wrap" label="Wrap lines" pressed={wrapLogs} onClick={() => change({ wrapLogs: !wrapLogs })} />
                <Button kind="quiet" bare icon="download" label="Download log" disabled={count === 0 || saving} onClick={onSave} />
                <Button kind="quiet" icon="end" label="Bottom" pressed={follow.value} onClick={() => control.current?.toEnd()} />
                </span>
            </div>
            {notice}
            {count === 0 ? empty
                : <VirtualList className={`log ${wrapLogs ? "wrapped" : ""}`} count={count} estimate={18} epoch={`${wrapLogs}${lines.dropped}`} label={label}
                    follow={follow.value} onFollow={(on) => (follow.value = on)} control={(c) => (control.current = c)}
                    keyOf={(i) => lines.dropped + i} render={(i) => <LogLine text={lines.lines[i]!} number={lines.dropped + i + 1} hit={isHit.has(i)} />} />}
        </div>
    );
}

export const NoLogs = () => <Blank title="No logs yet" />;
