// Two runs side by side: figures, dialogs aligned by turn, patches.

import { useEffect, useMemo } from "preact/hooks";
import type { Row } from "../lib/dialog";
import { parseDiff, similarity } from "../lib/diff";
import { dateTime, dollars, duration, integer, plural, short } from "../lib/format";
import { address, go, route, setQuery } from "../lib/route";
import { Badge, Blank, Button } from "../parts/basics";
import { GradeMark } from "../parts/run-marks";
import { VirtualList } from "../parts/virtual-list";
import type { Run } from "../protocol";
import { allRuns, allRunsError, loadAllRuns } from "../stores/all-runs";
import type { Feed } from "../stores/feed";
import { feedOf } from "../stores/feed";
import { openIds } from "../stores/opened";
import { DialogRow, useOpenRows } from "./dialog-row";
import { DiffList } from "./diff-list";
import { gradeChecks } from "./grade";

const NO_FOLDS = { closed: false, turn: 0 };

function RunChoice({ label, value, onChoose, like }: { label: string; value: string; onChoose: (id: string) => void; like: Run | undefined }) {
    const runs = allRuns.value ?? [];
    const open = openIds.value;
    const rank = (run: Run) => (like && run.taskId === like.taskId ? 0 : open.includes(run.id) ? 1 : 2);
    const sorted = useMemo(() => runs.filter((run) => run.id !== like?.id).sort((a, b) => rank(a) - rank(b)).slice(0, 500), [runs, like, open]);
    const name = (run: Run) => `${run.taskId} · ${run.referenceRun ? "reference" : run.model} · ${run.agent} · ${run.grade ?? run.status} · ${run.id.slice(0, 15)}`;
    const chosen = runs.find((run) => run.id === value);
    return (
        <select aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
            <option value="">{label}…</option>
            {chosen && !sorted.includes(chosen) && <option value={value}>{name(chosen)}</option>}
            {sorted.map((run) => <option key={run.id} value={run.id}>{name(run)}</option>)}
        </select>
    );
}

interface Figure { readonly name: string; readonly of: (run: Run, feed: Feed) => preact.ComponentChildren }

const FIGURES: readonly Figure[] = [
    { name: "Grade", of: (run, feed) => <GradeMark grade={feed.result.value?.patch_result?.status ?? run.grade} reference={run.referenceRun} /> },
    { name: "Checks", of: (_, feed) => feed.result.value?.patch_result ? <span class="check-chips">{gradeChecks(feed.result.value.patch_result).map((c) => <Badge key={c.name} tone={c.tone}>{c.name} {c.word}</Badge>)}</span> : "–" },
    { name: "Model", of: (run) => (run.referenceRun ? "reference" : run.model) },
    { name: "Agent", of: (run) => run.agent },
    { name: "Time", of: (run, feed) => duration(run.durationSeconds ?? feed.result.value?.runtime_result?.agent_duration) || "–" },
    { name: "Spend", of: (run) => dollars(run.spend) || "–" },
    { name: "Tokens", of: (_, feed) => `${short(feed.dialog.figures.tokens.in)} in · ${short(feed.dialog.figures.tokens.out)} out` },
    { name: "Turns", of: (_, feed) => integer(feed.dialog.figures.turns) },
    { name: "Tool calls", of: (_, feed) => `${integer(feed.dialog.figures.tools)}${feed.dialog.figures.errors ? `, ${feed.dialog.figures.errors} failed` : ""}` },
    { name: "Changes", of: (_, feed) => { const files = feed.files.value ?? []; return <>{plural(files.length, "file")} <span class="added">+{files.reduce((n, f) => n + f.additions, 0)}</span> <span class="removed">−{files.reduce((n, f) => n + f.deletions, 0)}</span></>; } },
];

const who = (run: Run) => `${run.referenceRun ? "reference" : run.model} · ${run.agent}`;

/** Two runs are told apart by who worked on them, or by the task, or at least by the time. */
function titleBeside(run: Run, other: Run): string {
    if (run.taskId !== other.taskId) return `${run.taskId} · ${who(run)}`;
    return who(run) === who(other) ? `${who(run)} · ${dateTime(run.startedAt ?? run.createdAt)}` : who(run);
}

function Figures({ a, b }: { a: Feed; b: Feed }) {
    void a.dialogBeat.value;
    void b.dialogBeat.value;
    const score = similarity(parseDiff(a.diff.value ?? ""), parseDiff(b.diff.value ?? ""));
    return (
        <table class="plain-table figures">
            <thead><tr><th scope="col">Figure</th>
                {[a.run, b.run].map((run, i) => <th scope="col" key={i}><a href={address(["runs", run.id])}>{titleBeside(run, i === 0 ? b.run : a.run)}</a></th>)}</tr></thead>
            <tbody>{FIGURES.map((figure) => <tr key={figure.name}><th scope="row">{figure.name}</th><td>{figure.of(a.run, a)}</td><td>{figure.of(b.run, b)}</td></tr>)}
                {score !== null && <tr><th scope="row">Patches</th><td colSpan={2}><Badge tone="info" title="Changed lines that both patches have">{score}% alike</Badge></td></tr>}</tbody>
        </table>
    );
}

/** Row numbers of each turn, turn 0 being what comes before the first message. */
function turnsOf(rows: readonly Row[]): number[][] {
    const turns: number[][] = [];
    rows.forEach((row, i) => (turns[row.turn] ??= []).push(i));
    return Array.from(turns, (turn) => turn ?? []);
}

/** Both dialogs in one list: a row holds a turn's nth entry of either side. */
function pairsOf(a: readonly number[][], b: readonly number[][]): { turn: number; left: number; right: number; first: boolean }[] {
    const pairs = [];
    for (let turn = 0; turn < Math.max(a.length, b.length); turn++) {
        const left = a[turn] ?? [], right = b[turn] ?? [];
        for (let i = 0; i < Math.max(left.length, right.length, 1); i++) pairs.push({ turn, left: left[i] ?? -1, right: right[i] ?? -1, first: i === 0 });
    }
    return pairs;
}

function Dialogs({ a, b }: { a: Feed; b: Feed }) {
    const beatA = a.dialogBeat.value, beatB = b.dialogBeat.value;
    const pairs = useMemo(() => pairsOf(turnsOf(a.dialog.rows), turnsOf(b.dialog.rows)), [a, b, beatA, beatB]);
    const openA = useOpenRows(), openB = useOpenRows();
    const title = (feed: Feed) => titleBeside(feed.run, feed === a ? b.run : a.run);
    const side = (feed: Feed, index: number, open: ReturnType<typeof useOpenRows>) => {
        const row = feed.dialog.rows[index];
        if (!row) return <div class="pair-side"><div class="pair-gap" /></div>;
        return <div class="pair-side" data-run={title(feed)}><DialogRow row={row} entry={row.entry} turns={feed.dialog.figures.turns} href={address(["runs", feed.run.id, "dialog"], { e: row.entry.seq })} marked={false} open={open.isOpen(row)} onToggle={() => open.toggle(row)} /></div>;
    };
    if (pairs.length === 0) return <Blank busy={!a.dialogLoaded.value || !b.dialogLoaded.value} title="No dialogs to compare" />;
    return <>
        <div class="pair pair-head">{[a, b].map((feed, i) => <h2 class="split-title" key={i}>{title(feed)}</h2>)}</div>
        <VirtualList className="entries pairs" count={pairs.length} estimate={90} label="Both dialogs, turn by turn" epoch={`${a.run.id} ${b.run.id}`}
        render={(i) => {
            const pair = pairs[i]!;
            return (
                <div class="pair">
                    {pair.first && <div class="pair-turn">{pair.turn === 0 ? "Before the first turn" : `Turn ${pair.turn}`}</div>}
                    {side(a, pair.left, openA)}{side(b, pair.right, openB)}
                </div>
            );
        }} />
    </>;
}

function Patches({ a, b }: { a: Feed; b: Feed }) {
    return (
        <div class="split">
            {[a, b].map((feed, i) => {
                const text = feed.diff.value ?? "";
                return (
                    <div class="split-side" key={feed.run.id}>
                        <h2 class="split-title">{titleBeside(feed.run, i === 0 ? b.run : a.run)}</h2>
                        {text.trim() ? <DiffList files={parseDiff(text)} label={`${i === 0 ? "First" : "Second"} patch`} wrap={false} target={null} folds={NO_FOLDS} href={(l) => address(["runs", feed.run.id, "changes"], { l })} />
                            : <Blank title="No changes" />}
                    </div>
                );
            })}
        </div>
    );
}

const PARTS = [["figures", "Figures"], ["dialogs", "Dialogs"], ["patches", "Patches"]] as const;

function Both({ a, b }: { a: Run; b: Run }) {
    const left = feedOf(a), right = feedOf(b);
    const part = PARTS.find(([id]) => id === route.value.query.get("part"))?.[0] ?? "figures";
    return (
        <>
            <div class="pane-tools">
                <div class="segments" role="group" aria-label="What to compare">
                    {PARTS.map(([id, label]) => <button type="button" key={id} class="segment" aria-pressed={part === id} onClick={() => setQuery({ part: id === "figures" ? undefined : id })}>{label}</button>)}
                </div>
                {a.taskId !== b.taskId && <Badge tone="warn">Different tasks</Badge>}
            </div>
            <div class="compare-body">
                {part === "figures" && <div class="scroll pad"><Figures a={left} b={right} /></div>}
                {part === "dialogs" && <Dialogs a={left} b={right} />}
                {part === "patches" && <Patches a={left} b={right} />}
            </div>
        </>
    );
}

export function CompareView() {
    useEffect(() => void loadAllRuns(), []);
    const [, a = "", b = ""] = route.value.path;
    const runs = allRuns.value;
    if (!runs && allRunsError.value) return <Blank top tone="bad" title="The runs cannot be listed">{allRunsError.value}</Blank>;
    const left = runs?.find((run) => run.id === a), right = runs?.find((run) => run.id === b);
    const choose = (x: string, y: string) => go(address(["compare", x || "-", ...(y ? [y] : [])], { part: route.peek().query.get("part") ?? undefined }));
    return (
        <div class="compare">
            <header class="view-head"><h1>Compare</h1><span class="grow" />
                <Button kind="quiet" label="Swap" disabled={!left || !right} onClick={() => choose(b, a)} /></header>
            <div class="compare-choice">
                <RunChoice label="First run" value={left ? a : ""} like={right} onChoose={(id) => choose(id, b)} />
                <RunChoice label="Second run" value={right ? b : ""} like={left} onChoose={(id) => choose(a, id)} />
            </div>
            {!runs ? <Blank busy title="Loading runs" />
                : left && right ? <Both key={`${a} ${b}`} a={left} b={right} />
                : <Blank title="Choose two runs">Runs of the same task come first in the second list.</Blank>}
        </div>
    );
}
