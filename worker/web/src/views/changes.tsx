// What a run changed: the agent's patch, the reference patch, both side by side.

import { useMemo, useState } from "preact/hooks";
import { parseDiff, similarity } from "../lib/diff";
import type { DiffFile } from "../lib/diff";
import { plural } from "../lib/format";
import { address, route, setQuery } from "../lib/route";
import { Badge, Blank, Button, CopyButton, Notice, saveText } from "../parts/basics";
import { VirtualList } from "../parts/virtual-list";
import type { Feed } from "../stores/feed";
import { change, settings } from "../stores/settings";
import { DiffList } from "./diff-list";

const SIDES = [["agent", "Agent"], ["truth", "Truth"], ["split", "Split"]] as const;
type SideName = (typeof SIDES)[number][0];

function RawDiff({ text, label }: { text: string; label: string }) {
    const lines = useMemo(() => text.split("\n"), [text]);
    const kind = (line: string) => (line.startsWith("+") ? "add" : line.startsWith("-") ? "delete" : line.startsWith("@@") ? "hunk" : "");
    return <VirtualList className="raw" count={lines.length} estimate={20} label={label}
        render={(i) => <div class={`raw-line ${kind(lines[i]!)}`}>{lines[i] || " "}</div>} />;
}

function Similarity({ score }: { score: number | null }) {
    if (score === null) return null;
    return <Badge tone={score >= 80 ? "ok" : score >= 40 ? "warn" : "bad"} title="Changed lines in common with the reference patch, per file">Similarity: {score}%</Badge>;
}

interface PatchProps { text: string; files: readonly DiffFile[]; raw: boolean; label: string; runId: string; side: SideName; folds: { closed: boolean; turn: number } }

function Patch({ text, files, raw, label, runId, side, folds }: PatchProps) {
    const { query } = route.value;
    const view = side === "agent" ? undefined : side;
    if (!text.trim()) return <Blank title="No changes yet" />;
    if (raw) return <RawDiff text={text} label={label} />;
    return <DiffList files={files} label={label} wrap={settings.value.wrapDiff} folds={folds} target={query.get("l") ?? query.get("f")}
        href={(l) => address(["runs", runId, "changes"], { l, view })} />;
}

export function ChangesPane({ feed }: { feed: Feed }) {
    const [raw, setRaw] = useState(false);
    const [folds, setFolds] = useState({ closed: false, turn: 0 });
    const diff = feed.diff.value, reference = feed.reference.value ?? "";
    const mine = useMemo(() => parseDiff(diff ?? ""), [diff]);
    const theirs = useMemo(() => parseDiff(reference), [reference]);
    const score = useMemo(() => similarity(mine, theirs), [mine, theirs]);
    const hasTruth = reference.trim() !== "";
    const asked = route.value.query.get("view");
    const side: SideName = hasTruth && (asked === "truth" || asked === "split") ? asked : "agent";
    if (diff === null && !hasTruth) {
        if (feed.state.value === "connecting") return <Blank busy title="Loading changes" />;
        if (feed.state.value === "error") return <Blank tone="bad" title="Failed to load diff">{feed.trouble.value}</Blank>;
        return <Blank title="No changes yet" />;
    }
    const files = side === "truth" ? theirs : mine;
    const text = side === "truth" ? reference : diff ?? "";
    const additions = files.reduce((n, file) => n + file.additions, 0), deletions = files.reduce((n, file) => n + file.deletions, 0);
    const patch = (which: "agent" | "truth", label: string) => (
        <Patch text={which === "truth" ? reference : diff ?? ""} files={which === "truth" ? theirs : mine} raw={raw} label={label}
            runId={feed.run.id} side={side} folds={folds} />);
    return (
        <section class="pane changes" aria-label="Changes">
            <div class="pane-tools">
                <span class="dim">{plural(files.length, "file")} <span class="added">+{additions}</span> <span class="removed">−{deletions}</span></span>
                {hasTruth && <div class="segments" role="group" aria-label="Which patch">
                    {SIDES.map(([id, label]) => <button type="button" key={id} class="segment" aria-pressed={side === id}
                        onClick={() => setQuery({ view: id === "agent" ? undefined : id, l: undefined, f: undefined })}>{label}</button>)}
                </div>}
                <Similarity score={score} />
                <span class="grow" />
                <span class="button-row">
                <Button kind="quiet" label={raw ? "Parsed" : "Raw"} pressed={raw} onClick={() => setRaw(!raw)} />
                <Button kind="quiet" bare icon="wrap" label="Wrap lines" pressed={settings.value.wrapDiff} onClick={() => change({ wrapDiff: !settings.value.wrapDiff })} />
                <Button kind="quiet" bare icon="folds" label={folds.closed ? "Expand all" : "Collapse all"}
                    onClick={() => setFolds({ closed: !folds.closed, turn: folds.turn + 1 })} />
                <CopyButton text={() => text} label="Copy diff" />
                <Button kind="quiet" bare icon="download" label="Export Diff" onClick={() => saveText(side === "truth" ? "reference.diff" : "patch.diff", text)} />
                </span>
            </div>
            {side === "truth" && <Notice tone="info">This is the reference patch, not what the agent wrote.</Notice>}
            {side === "split"
                ? <div class="split">
                    <div class="split-side"><h3>Agent Patch</h3>{patch("agent", "Agent patch")}</div>
                    <div class="split-side"><h3>Ground Truth</h3>{patch("truth", "Reference patch")}</div>
                </div>
                : patch(side, side === "truth" ? "Reference patch" : "Agent patch")}
        </section>
    );
}
