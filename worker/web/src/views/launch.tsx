// The launch wizard: six steps from task to review, all of them by keyboard too.

import { useEffect, useRef, useState } from "preact/hooks";
import { bindKey } from "../lib/keys";
import { address, go } from "../lib/route";
import { plural } from "../lib/format";
import { Badge, Blank, Button, CopyButton, Notice } from "../parts/basics";
import { Icon } from "../parts/icons";
import type { Outcome } from "../stores/wizard";
import * as wizard from "../stores/wizard";
import { isHosted, role } from "../stores/session";
import { AgentStep, ModelStep, ModeStep, OptionsStep } from "./launch-steps";
import { TaskStep } from "./launch-tasks";

function Steps() {
    const current = wizard.step.value;
    const furthest = wizard.valid.value.findIndex((ok, i) => !ok && i < 5);
    const reach = furthest < 0 ? 5 : furthest;
    const list = useRef<HTMLOListElement>(null);
    useEffect(() => {
        const step = list.current?.querySelector<HTMLElement>("[aria-current]");
        if (step) list.current!.scrollLeft = step.offsetLeft - list.current!.offsetLeft - 40;
    }, [current]);
    return (
        <ol class="steps" ref={list} aria-label="Steps">
            {wizard.STEPS.map((name, i) => {
                const done = i < current && wizard.valid.value[i];
                return (
                    <li key={name}>
                        <button type="button" class={`step ${done ? "done" : ""}`} aria-current={i === current ? "step" : undefined} disabled={i > Math.max(reach, current)} onClick={() => (wizard.step.value = i)}>
                            <span class="step-number">{done ? <Icon name="check" size={12} /> : i + 1}</span>{name}
                        </button>
                    </li>
                );
            })}
        </ol>
    );
}

function Doctor() {
    const bad = (wizard.doctor.value?.report?.checks ?? []).filter((check) => check.status !== "ok");
    if (bad.length === 0) return null;
    return (
        <details class="doctor">
            <summary><Badge tone={bad.some((c) => c.status === "fail") ? "bad" : "warn"}>{plural(bad.length, "remark")}</Badge> from ssebench doctor</summary>
            <ul>{bad.map((check) => <li key={check.name}><strong>{check.name}</strong>: {check.detail}{check.fix && <span class="dim"> {check.fix}</span>}</li>)}</ul>
        </details>
    );
}

function ReviewStep() {
    const tasks = [...wizard.chosenTasks.value];
    const rows: [string, string, number][] = [
        ["Tasks", tasks.slice(0, 5).join(", ") + (tasks.length > 5 ? ` and ${tasks.length - 5} more` : ""), 0],
        ["Agent", wizard.agent.value, 1],
        ["Model", wizard.isReference.value ? "none" : wizard.model.value, 2],
        ["Mode", wizard.mode.value, 3],
        ["Options", wizard.changes.value.join(", ") || "defaults", 4],
    ];
    const commands = tasks.slice(0, 3).map(wizard.commandFor);
    return (
        <>
            <dl class="review-rows">
                {rows.map(([name, value, at]) => (
                    <div key={name}><dt>{name}</dt><dd>{value}</dd><dd><Button kind="quiet" label="Edit" aria-label={`Edit ${name}`} onClick={() => (wizard.step.value = at)} /></dd></div>
                ))}
            </dl>
            <p class="dim review-note">The container stays after grading, for its terminal and assistant, until the run is stopped.</p>
            <h2 class="section-title">Command</h2>
            <div class="command"><pre tabIndex={0}>{commands.join("\n")}{tasks.length > 3 ? `\n... and ${tasks.length - 3} more` : ""}</pre><CopyButton text={() => tasks.map(wizard.commandFor).join("\n")} /></div>
        </>
    );
}

const BODIES = [TaskStep, AgentStep, ModelStep, ModeStep, OptionsStep, ReviewStep];

function Outcomes({ outcomes, onDone }: { outcomes: readonly Outcome[]; onDone: () => void }) {
    const refused = outcomes.filter((o) => o.error !== null);
    return (
        <Notice tone="bad" action={<Button label="Dismiss" onClick={onDone} />}>
            {refused.length === outcomes.length ? "Nothing was launched." : `${plural(outcomes.length - refused.length, "task")} launched, ${refused.length} refused.`}
            <ul>{refused.map((o) => <li key={o.task}><strong>{o.task}</strong>: {o.error}</li>)}</ul>
        </Notice>
    );
}

export function LaunchView() {
    const [busy, setBusy] = useState(false);
    const [outcomes, setOutcomes] = useState<readonly Outcome[]>([]);
    const panel = useRef<HTMLDivElement>(null);
    useEffect(() => void (isHosted.value || wizard.loadChoices()), []);
    const step = wizard.step.value, last = step === wizard.STEPS.length - 1;
    const ok = wizard.valid.value[step] === true;
    const move = (by: number) => {
        wizard.step.value = Math.max(0, Math.min(wizard.step.peek() + by, wizard.STEPS.length - 1));
        panel.current?.focus();
    };
    const launch = async () => {
        if (busy) return;
        setBusy(true);
        const done = await wizard.launchAll();
        setBusy(false);
        const first = done.find((o) => o.id !== null);
        if (done.some((o) => o.error !== null)) {
            setOutcomes(done);
            wizard.chosenTasks.value = new Set(done.filter((o) => o.error !== null).map((o) => o.task));
        } else if (first?.id) {
            wizard.startOver();
            go(address(["launches", first.id]));
        }
    };
    useEffect(() => {
        const unbind = [
            // Asked when the key comes: what was rendered last may be a choice behind.
            bindKey("n", "Next step", "Launch", () => wizard.valid.value[wizard.step.value] && move(1)),
            bindKey("p", "Previous step", "Launch", () => move(-1)),
        ];
        return () => unbind.forEach((undo) => undo());
    }, []);
    if (isHosted.value && role.value === "view") return <Blank top title="This token may only view">Launching needs a token with the role operate or full.</Blank>;
    if (isHosted.value) return <Blank top title="This server is read-only">Launching is off on a hosted server.</Blank>;
    if (wizard.loadError.value) return <Blank top tone="bad" title="Failed to load configuration">{wizard.loadError.value}<p><Button label="Try again" onClick={() => void wizard.loadChoices()} /></p></Blank>;
    if (!wizard.config.value) return <Blank top busy title="Loading what can be launched" />;
    const Body = BODIES[step]!;
    const label = busy ? "Launching..." : `Launch ${plural(wizard.chosenTasks.value.size, "task")}`;
    return (
        <div class="wizard">
            <header class="view-head"><h1>Launch</h1><span class="grow" /><Doctor /></header>
            <Steps />
            {outcomes.length > 0 && <Outcomes outcomes={outcomes} onDone={() => setOutcomes([])} />}
            <div class="wizard-body" ref={panel} tabIndex={-1} role="group" aria-label={wizard.STEPS[step]}><Body /></div>
            <footer class="wizard-foot">
                <Button label="Back" disabled={step === 0} onClick={() => move(-1)} />
                <span class="grow" />
                {last ? <Button kind="primary" icon="launch" label={label} disabled={!ok || busy} onClick={() => void launch()} />
                    : <Button kind="primary" label="Next" disabled={!ok} onClick={() => move(1)} />}
            </footer>
        </div>
    );
}
