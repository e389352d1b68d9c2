// How a run was graded.

import { useState } from "preact/hooks";
import { duration } from "../lib/format";
import { lookup } from "../lib/lookup";
import type { Tone } from "../parts/basics";
import { Badge, Blank, Button, Notice } from "../parts/basics";
import type { IconName } from "../parts/icons";
import { Icon } from "../parts/icons";
import { LongText } from "../parts/long-text";
import type { PatchResult, Result, Run } from "../protocol";

interface Check { readonly name: string; readonly tone: Tone; readonly word: string; readonly what: string }

function yesNo(name: string, value: boolean | null | undefined, what: string): Check {
    if (value === null || value === undefined) return { name, tone: "plain", word: "N/A", what };
    return { name, tone: value ? "ok" : "bad", word: value ? "Pass" : "Fail", what };
}

function security(patch: PatchResult): Check {
    const passed = patch.pov_passed ?? 0, all = patch.pov_total ?? 0;
    const what = "Proofs of vulnerability that no longer work";
    if (!all) return { name: "Security", tone: "plain", word: "N/A", what };
    return { name: "Security", tone: passed === all ? "ok" : passed > 0 ? "warn" : "bad", word: `${passed}/${all}`, what };
}

export function gradeChecks(patch: PatchResult): Check[] {
    return [
        yesNo("Build", patch.build_success, "The patched source builds"),
        security(patch),
        yesNo("Func", patch.func_test_success, "The project's own tests pass"),
        yesNo("Intent", patch.intent_test_success, "The tests of the intended behaviour pass"),
    ];
}

/** The grade's colour: what failed first decides; functional tests never do. */
function verdict(patch: PatchResult): Tone {
    if (patch.status === "error") return "warn";
    if (patch.build_success === false) return "bad";
    if (patch.intent_test_success === false) return "warn";
    const total = patch.pov_total ?? 0, passed = patch.pov_passed ?? 0;
    if (total > 0 && passed === total) return "ok";
    return total > 0 && passed > 0 ? "warn" : total > 0 ? "bad" : "plain";
}

const MARKS: Record<Tone, IconName> = { ok: "check", bad: "cross", warn: "alert", info: "info", plain: "minus" };
const TITLES: Record<string, string> = { passed: "Passed", failed: "Failed", error: "Run error" };

export function GradeCard({ result, run }: { result: Result; run: Run }) {
    const patch = result.patch_result ?? {}, runtime = result.runtime_result ?? {};
    const tone = verdict(patch);
    return (
        <section class={`grade-card ${tone}`} aria-label="Evaluation">
            <header class="grade-head">
                <Icon name={MARKS[tone]} />
                <h3>{lookup(TITLES, patch.status ?? "") ?? "Graded"}</h3>
                {run.referenceRun && <Badge tone="info">Reference run</Badge>}
                <span class="grow" />
                {runtime.agent_duration !== null && runtime.agent_duration !== undefined && <span class="dim">{duration(runtime.agent_duration)}</span>}
                {!!runtime.agent_exit_code && <Badge tone="warn">exit {runtime.agent_exit_code}</Badge>}
                {runtime.agent_timeout && <Badge tone="warn">Agent timeout</Badge>}
                {runtime.evaluator_timeout && <Badge tone="warn">Evaluator timeout</Badge>}
            </header>
            <ul class="checks">
                {gradeChecks(patch).map((check) => (
                    <li key={check.name} class={`check ${check.tone}`}>
                        <Icon name={MARKS[check.tone]} />
                        <span class="check-name">{check.name}</span><strong>{check.word}</strong><span class="check-what">{check.what}</span>
                    </li>
                ))}
            </ul>
            {run.referenceRun && <p class="dim">This run applied the reference patch: its grade rates the task, not a model.</p>}
            {patch.status === "error" && <Notice tone="warn">The run did not come to a grade; it does not count as a model's result.</Notice>}
            <GradeError patch={patch} />
        </section>
    );
}

function GradeError({ patch }: { patch: PatchResult }) {
    const [open, setOpen] = useState(false);
    if (!patch.error_msg && !patch.error_log) return null;
    return (
        <div class="grade-error">
            {patch.error_msg && <p class="bad strong">{patch.error_msg}</p>}
            {patch.error_log && <Button kind="quiet" icon={open ? "down" : "right"} label={open ? "Hide log" : "Show log"} onClick={() => setOpen(!open)} />}
            {open && patch.error_log && <LongText text={patch.error_log} name="error.log" first={20_000} />}
        </div>
    );
}

export function GradePane({ result, run, waiting }: { result: Result | null; run: Run; waiting: boolean }) {
    if (result?.available) return <div class="scroll pad"><GradeCard result={result} run={run} /></div>;
    if (result) return <Blank busy={run.source !== "results"} title={run.source === "results" ? "This run has no grade" : "Evaluating patch..."}>{run.source === "results" ? "" : "The grade appears here when the evaluator is done."}</Blank>;
    return waiting ? <Blank busy title="Loading the grade" /> : <Blank title="This run has no grade" />;
}
