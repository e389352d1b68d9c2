// How a run's state and grade look, wherever they are shown.

import { lookup } from "../lib/lookup";
import type { Run } from "../protocol";
import type { Tone } from "./basics";
import { Badge } from "./basics";

export function statusWord(run: Run): string {
    if (run.source === "results") return "Finished";
    return { running: "Running", exited: "Exited", paused: "Paused", created: "Created", unknown: "Unknown" }[run.status];
}

export function StatusMark({ run }: { run: Run }) {
    const kind = run.source === "results" ? "finished" : run.status;
    return <span class={`status ${kind}`}><span class="dot" aria-hidden="true" />{statusWord(run)}</span>;
}

const GRADES: Record<string, { tone: Tone; word: string }> = {
    passed: { tone: "ok", word: "Passed" },
    failed: { tone: "bad", word: "Failed" },
    error: { tone: "warn", word: "Error" },
};

export function GradeMark({ grade, reference }: { grade: string | null | undefined; reference?: boolean | undefined }) {
    const known = grade ? lookup(GRADES, grade) : undefined;
    if (!known) return <span class="dim" aria-label="no grade">–</span>;
    return <Badge tone={known.tone} title={reference ? "A reference run: the grade rates the task, not a model" : undefined}>{known.word}</Badge>;
}
