// One run: its head, and the areas that show dialog, changes, grade, logs.

import { useEffect, useState } from "preact/hooks";
import { errorText } from "../lib/api";
import { dateTime, dollars, duration } from "../lib/format";
import { address, go, route } from "../lib/route";
import { Badge, Blank, Button, CopyButton, Notice, Tabs } from "../parts/basics";
import { Boundary } from "../parts/boundary";
import { GradeMark, StatusMark } from "../parts/run-marks";
import { Icon } from "../parts/icons";
import { Splitter } from "../parts/splitter";
import type { Run } from "../protocol";
import type { Feed } from "../stores/feed";
import { feedOf } from "../stores/feed";
import { known, openRun } from "../stores/opened";
import { findRun } from "../stores/runs";
import { change, settings } from "../stores/settings";
import { hasAssistant, hasTerminal, isHosted } from "../stores/session";
import { AssistantPane } from "./assistant";
import { ChangesPane } from "./changes";
import { DialogPane } from "./dialog";
import { EndRunModal } from "./end-run";
import { FilesPane } from "./files";
import { GradePane } from "./grade";
import { LogsPane } from "./logs";
import { ProjectModal } from "./project";
import { ReviewPane } from "./review";
import { TerminalPane } from "./terminal";

/** Above this width there are areas side by side, below it one at a time. */
const WIDE = matchMedia("(min-width: 900px)");

function useWide(): boolean {
    const [wide, setWide] = useState(WIDE.matches);
    useEffect(() => {
        const note = () => setWide(WIDE.matches);
        WIDE.addEventListener("change", note);
        return () => WIDE.removeEventListener("change", note);
    }, []);
    return wide;
}

interface PaneTab { readonly id: string; readonly label: string; readonly badge?: preact.ComponentChildren }

function paneTabs(feed: Feed): { center: PaneTab[]; bottom: PaneTab[] } {
    const files = feed.files.value;
    const center: PaneTab[] = [
        { id: "changes", label: "Changes" },
        files?.length ? { id: "files", label: "Files", badge: files.length } : { id: "files", label: "Files" },
        { id: "grade", label: "Grade" },
    ];
    const bottom: PaneTab[] = [{ id: "logs", label: "Logs" }];
    if (feed.run.source !== "results" && hasTerminal.value) bottom.push({ id: "terminal", label: "Terminal" });
    if (feed.run.source !== "results" && hasAssistant.value) center.push({ id: "assistant", label: "AI" });
    if (feed.review.value !== null) bottom.unshift({ id: "review", label: "Review" });
    return { center, bottom };
}

function PaneBody({ id, feed, tab }: { id: string; feed: Feed; tab: string }) {
    switch (id) {
    case "dialog": return <DialogPane feed={feed} tab={tab} />;
    case "files": return <FilesPane files={feed.files.value} runId={feed.run.id} />;
    case "grade": return <GradePane result={feed.result.value} run={feed.run} waiting={feed.state.value === "connecting"} />;
    case "logs": return <LogsPane run={feed.run} />;
    case "terminal": return <TerminalPane run={feed.run} />;
    case "assistant": return <AssistantPane feed={feed} />;
    case "review": return <ReviewPane text={feed.review.value} />;
    default: return <ChangesPane feed={feed} />;
    }
}

function Pane(props: { id: string; feed: Feed; tab: string }) {
    return <Boundary key={props.id}><PaneBody {...props} /></Boundary>;
}

/** Panes that stay alive behind others once they were shown: a shell, a half-written question. */
const LASTING = ["terminal", "assistant"];

function TabBody({ tabs, current, feed, tab }: { tabs: readonly PaneTab[]; current: string; feed: Feed; tab: string }) {
    const [visited, setVisited] = useState<readonly string[]>([]);
    if (LASTING.includes(current) && !visited.includes(current)) setVisited([...visited, current]);
    const lasting = LASTING.filter((id) => (id === current || visited.includes(id)) && tabs.some((t) => t.id === id));
    return (
        <>
            {lasting.map((id) => (
                <div class="tab-body" key={id} role="tabpanel" aria-label={id} hidden={id !== current}><Pane id={id} feed={feed} tab={tab} /></div>
            ))}
            {!lasting.includes(current) && <div class="tab-body" key="pane" role="tabpanel" aria-label={current}><Pane id={current} feed={feed} tab={tab} /></div>}
        </>
    );
}

/** The tabs that were used last carry over from run to run. */
let lastCenter = "changes";
let lastBottom = "logs";

function Areas({ feed }: { feed: Feed }) {
    const wide = useWide();
    const tab = route.value.path[2] ?? "dialog";
    const { center, bottom } = paneTabs(feed);
    const has = (tabs: PaneTab[], id: string) => tabs.some((t) => t.id === id);
    if (has(center, tab)) lastCenter = tab;
    if (has(bottom, tab)) lastBottom = tab;
    const [chosenBottom, setChosenBottom] = useState(false);
    const select = (id: string) => {
        if (has(bottom, id)) setChosenBottom(true);
        go(address(["runs", feed.run.id, id]), { replace: true });
    };
    if (!wide) {
        const all: PaneTab[] = [{ id: "dialog", label: "Dialog" }, ...center, ...bottom];
        const current = has(all, tab) ? tab : "dialog";
        return (
            <div class="areas one">
                <Tabs tabs={all} current={current} onSelect={select} label="Parts of the run" />
                <TabBody tabs={all} current={current} feed={feed} tab={current} />
            </div>
        );
    }
    const now = settings.value;
    const centerTab = has(center, lastCenter) ? lastCenter : "changes";
    // A review note comes forward, unless the reader asked for something else here.
    const bottomTab = has(bottom, "review") && !has(bottom, tab) && !chosenBottom ? "review" : has(bottom, lastBottom) ? lastBottom : bottom[0]!.id;
    return (
        <div class="areas">
            {now.showLeft && <div class="area left" style={{ width: `${now.leftWidth}px` }}><Pane id="dialog" feed={feed} tab={tab} /></div>}
            {now.showLeft && <Splitter label="Width of the dialog" upright value={now.leftWidth} min={280} max={() => Math.max(280, innerWidth - 480)}
                direction={1} onChange={(leftWidth) => change({ leftWidth })} />}
            <div class="area-column">
                <div class={`area center tabs-${now.centerTabPosition}`}>
                    <Tabs tabs={center} current={centerTab} onSelect={select} label="Parts of the run" />
                    <TabBody tabs={center} current={centerTab} feed={feed} tab={tab} />
                </div>
                {now.showBottom && <Splitter label="Height of the lower area" upright={false} value={now.bottomHeight} min={100} max={() => Math.max(100, innerHeight - 260)}
                    direction={-1} onChange={(bottomHeight) => change({ bottomHeight })} />}
                {now.showBottom && <div class={`area bottom tabs-${now.bottomTabPosition}`} style={{ height: `${now.bottomHeight}px` }}>
                    <Tabs tabs={bottom} current={bottomTab} onSelect={select} label="Lower parts of the run" />
                    <TabBody tabs={bottom} current={bottomTab} feed={feed} tab={tab} />
                </div>}
            </div>
        </div>
    );
}

function Head({ run, feed }: { run: Run; feed: Feed }) {
    const [details, setDetails] = useState(false);
    const [ending, setEnding] = useState(false);
    const live = run.source === "container" && !isHosted.value;
    const grade = feed.result.value?.patch_result?.status ?? run.grade;
    const now = settings.value;
    return (
        <header class="run-head">
            <div class="run-title">
                <h1>{run.taskId}</h1>
                <StatusMark run={run} />
                {grade && <GradeMark grade={grade} reference={run.referenceRun} />}
                {run.referenceRun && <Badge tone="info">Reference run</Badge>}
            </div>
            <div class="run-facts">
                <span>{run.referenceRun ? "no model" : run.model}</span><span>{run.agent}</span>
                {feed.project.value?.language && <span>{feed.project.value.language}</span>}
                {run.durationSeconds ? <span>{duration(run.durationSeconds)}</span> : null}
                {run.spend ? <span>{dollars(run.spend)}</span> : null}
                <span title={run.id}>{dateTime(run.startedAt ?? run.createdAt)}</span>
                {feed.sdkVersion.value && <span>v{feed.sdkVersion.value}</span>}
            </div>
            <span class="grow" />
            <div class="run-tools">
                {live && <Button kind="quiet" icon={run.status === "running" ? "stop" : "trash"} label={run.status === "running" ? "Stop" : "Remove"} onClick={() => setEnding(true)} />}
                <a class="button quiet" href={address(["compare", run.id])}><Icon name="compare" /><span>Compare</span></a>
                <Button kind="quiet" icon="info" label="Details" onClick={() => setDetails(true)} />
                <CopyButton text={() => location.href} label="Copy link" icon="link" />
                <span class="wide-only">
                    <Button kind="quiet" bare icon="left" label="Dialog beside" pressed={now.showLeft} onClick={() => change({ showLeft: !now.showLeft })} />
                    <Button kind="quiet" bare icon="bottom" label="Lower area" pressed={now.showBottom} onClick={() => change({ showBottom: !now.showBottom })} />
                </span>
            </div>
            {ending && <EndRunModal run={run} onClose={() => setEnding(false)} />}
            {details && <ProjectModal run={run} project={feed.project.value} onClose={() => setDetails(false)} />}
        </header>
    );
}

function useRun(id: string): { run: Run | null; error: string | null; missing: boolean } {
    const run = known.value.get(id) ?? null;
    const [state, setState] = useState<{ error: string | null; missing: boolean }>({ error: null, missing: false });
    useEffect(() => {
        if (run) return;
        findRun(id).then((found) => setState({ error: null, missing: !found }), (error) => setState({ error: errorText(error), missing: false }));
    }, [id, run === null]);
    return { run, ...state };
}

export function RunView() {
    const id = route.value.path[1] ?? "";
    const { run, error, missing } = useRun(id);
    useEffect(() => {
        if (run) openRun(id);
    }, [id, run !== null]);
    if (!run && error) return <Blank top tone="bad" title="The run cannot be read">{error}</Blank>;
    if (!run && missing) return <Blank top title="Run not found">No listed run has the ID {id}. <a href={address(["runs"])}>To the run list</a></Blank>;
    if (!run) return <Blank top busy title="Loading the run" />;
    const feed = feedOf(run);
    return (
        <div class="run">
            <Head run={run} feed={feed} />
            {feed.trouble.value && <Notice tone="warn">{feed.trouble.value}</Notice>}
            <Areas feed={feed} />
        </div>
    );
}
