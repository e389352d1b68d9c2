// The sidebar: where one can go, which launches and runs are open, how the connection is.

import { useEffect, useState } from "preact/hooks";
import { locked } from "../lib/api";
import { address, route } from "../lib/route";
import { helpOpen } from "../lib/keys";
import type { IconName } from "../parts/icons";
import { Icon } from "../parts/icons";
import { Button } from "../parts/basics";
import { statusWord } from "../parts/run-marks";
import type { Run } from "../protocol";
import type { LaunchEntry } from "../stores/launches";
import { cancel, clear, launches } from "../stores/launches";
import { known, openIds } from "../stores/opened";
import { learnOpen, openAsked, watchOpen } from "../stores/runs";
import { change, settings } from "../stores/settings";
import { health, isHosted } from "../stores/session";
import { ConnectionMark } from "./connection-mark";
import { detach, DetachModal } from "./end-run";

interface Place { readonly path: string; readonly label: string; readonly icon: IconName; readonly writes?: true }

const PLACES: readonly Place[] = [
    { path: "runs", label: "Runs", icon: "runs" },
    { path: "matrix", label: "Matrix", icon: "matrix" },
    { path: "compare", label: "Compare", icon: "compare" },
    { path: "search", label: "Search dialogs", icon: "search" },
    { path: "launch", label: "Launch", icon: "launch", writes: true },
];

function Places() {
    const [here = "runs", below] = route.value.path;
    const current = (place: Place) => here === place.path && (place.path !== "runs" || !below);
    return (
        <ul class="places">
            {PLACES.filter((place) => !(place.writes && isHosted.value)).map((place) => (
                <li key={place.path}>
                    <a href={address([place.path])} aria-current={current(place) ? "page" : undefined}><Icon name={place.icon} />{place.label}</a>
                </li>
            ))}
        </ul>
    );
}

interface ItemProps { href: string; kind: string; title: string; text: string; current: boolean; action: string; onAction: () => void }

function Item({ href, kind, title, text, current, action, onAction }: ItemProps) {
    return (
        <li class="open-run">
            <a href={href} aria-current={current ? "page" : undefined}>
                <span class={`dot ${kind}`} aria-hidden="true" />
                <span class="open-run-text"><span class="open-run-task">{title}</span><span class="open-run-model">{text}</span></span>
            </a>
            <Button kind="quiet" bare icon="close" label={`${action} ${title}`} onClick={onAction} />
        </li>
    );
}

function LaunchItem({ entry }: { entry: LaunchEntry }) {
    const failed = entry.state?.status === "failed";
    const title = entry.state?.taskId ?? "Launch";
    const current = route.value.path[0] === "launches" && route.value.path[1] === entry.id;
    return <Item href={address(["launches", entry.id])} kind={failed ? "broken" : "busy"} title={title} current={current}
        text={entry.state?.queuePosition ? `Waiting, number ${entry.state.queuePosition} in line` : failed ? `Launch Failed${entry.state?.error ? `: ${entry.state.error}` : ""}` : "Launching..."}
        action={failed ? "Dismiss" : "Cancel"} onAction={() => void (failed ? clear(entry.id) : cancel(entry.id).catch(() => {}))} />;
}

function RunItem({ id, onDetach }: { id: string; onDetach: (run: Run) => void }) {
    const run = known.value.get(id);
    const current = route.value.path[0] === "runs" && route.value.path[1] === id;
    const close = () => (run?.status === "running" && !isHosted.value ? onDetach(run) : detach(id));
    return <Item href={address(["runs", id])} kind={run?.source === "results" ? "finished" : run?.status ?? "unknown"} title={run?.taskId ?? id} current={current}
        text={run ? `${statusWord(run)} · ${run.referenceRun ? "reference" : run.model} · ${run.agent}` : openAsked.value ? "not listed" : "not loaded yet"} action="Detach" onAction={close} />;
}

function ThemeSwitch() {
    const dark = settings.value.theme === "dark"
        || (settings.value.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    return <Button kind="quiet" bare icon={dark ? "sun" : "moon"} label={dark ? "Light colours" : "Dark colours"}
        onClick={() => change({ theme: dark ? "light" : "dark" })} />;
}

export function Sidebar({ open, onClose }: { open: boolean; onClose: () => void }) {
    const [detaching, setDetaching] = useState<Run | null>(null);
    useEffect(() => {
        if (locked.value) return;
        // A view that lists runs is given the time to do so.
        const timer = setTimeout(() => void learnOpen(), 300);
        return () => clearTimeout(timer);
    }, [locked.value]);
    useEffect(watchOpen, []);
    const pending = [...launches.value.values()].filter((entry) => entry.state?.status !== "running");
    return (
        <>
            {open && <div class="veil" onClick={onClose} />}
            <nav class={`sidebar ${open ? "open" : ""}`} aria-label="Main" onKeyDown={(event) => event.key === "Escape" && open && onClose()}>
                <a class="brand" href={address(["runs"])}>SSEBench</a>
                <Places />
                {health.value?.terminalHint && !isHosted.value && <p class="side-hint">{health.value.terminalHint}</p>}
                <h2 class="side-title">Open runs</h2>
                {openIds.value.length + pending.length === 0 && <p class="side-empty">None yet. Runs you look at stay here.</p>}
                <ul class="open-runs">
                    {!isHosted.value && pending.map((entry) => <LaunchItem key={entry.id} entry={entry} />)}
                    {openIds.value.map((id) => <RunItem key={id} id={id} onDetach={setDetaching} />)}
                </ul>
                <div class="side-foot">
                    <ConnectionMark />
                    <span class="grow" />
                    <Button kind="quiet" bare icon="keyboard" label="Keyboard (?)" onClick={() => (helpOpen.value = true)} />
                    <ThemeSwitch />
                    <a class="button quiet bare" href={address(["settings"])} aria-label="Settings" title="Settings"><Icon name="settings" /></a>
                </div>
            </nav>
            {detaching && <DetachModal run={detaching} onClose={() => setDetaching(null)} />}
        </>
    );
}
