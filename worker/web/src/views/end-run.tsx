// Asks before a run is stopped, removed or taken off the sidebar, and says what stays.

import { useState } from "preact/hooks";
import { errorText, request } from "../lib/api";
import { address, go, route } from "../lib/route";
import { Button, Notice } from "../parts/basics";
import { Modal } from "../parts/modal";
import { statusWord } from "../parts/run-marks";
import type { Run } from "../protocol";
import { dropFeed } from "../stores/feed";
import { closeRun, forget } from "../stores/opened";
import { loadRuns } from "../stores/runs";

/** Take a run off the sidebar; when it was in front, the next one comes forward. */
export function detach(id: string): void {
    const here = route.peek().path[0] === "runs" && route.peek().path[1] === id;
    const next = closeRun(id);
    dropFeed(id);
    if (here) go(next ? address(["runs", next]) : address(["runs"]));
}

type Deed = "stop" | "remove";

async function act(run: Run, deeds: readonly Deed[]): Promise<void> {
    for (const deed of deeds) await request(`containers/${encodeURIComponent(run.id)}/${deed}`, { method: "POST" });
    void loadRuns();
}

export function EndRunModal({ run, onClose }: { run: Run; onClose: () => void }) {
    const [busy, setBusy] = useState<string | null>(null);
    const [error, setError] = useState<string | null>(null);
    const running = run.status === "running" || run.status === "paused" || run.status === "unknown";
    const go = async (word: string, deeds: readonly Deed[], after: () => void) => {
        setBusy(word);
        setError(null);
        try {
            await act(run, deeds);
            onClose();
            after();
        } catch (e) {
            setError(errorText(e));
            setBusy(null);
        }
    };
    const gone = () => {
        detach(run.id);
        forget(run.id);
    };
    const foot = (
        <>
            <Button label="Cancel" disabled={busy !== null} onClick={onClose} />
            {running && <Button kind="danger" label={busy === "stop" ? "Stopping..." : "Stop"} disabled={busy !== null} onClick={() => void go("stop", ["stop"], () => {})} />}
            <Button kind="danger" label={busy === "remove" ? (running ? "Stopping..." : "Removing...") : running ? "Stop and remove" : "Remove"} disabled={busy !== null}
                onClick={() => void go("remove", running ? ["stop", "remove"] : ["remove"], gone)} />
        </>
    );
    return (
        <Modal title={running ? "Stop this run?" : "Remove this run's container?"} onClose={onClose} closable={busy === null} foot={foot}>
            <p><strong>{run.taskId}</strong>{run.model !== "unknown" && ` · ${run.model}`} · {statusWord(run)}</p>
            <p class="dim">{running ? "Stopping ends the agent; what it did so far is graded and kept. " : ""}Removing deletes the container with its file system. The results directory (dialog, patch, grade, logs) stays and the run remains listed as finished.</p>
            {error && <Notice tone="bad">{error}</Notice>}
        </Modal>
    );
}

/** Asked when a run is closed in the sidebar while it goes on. */
export function DetachModal({ run, onClose }: { run: Run; onClose: () => void }) {
    const [busy, setBusy] = useState(false);
    const [error, setError] = useState<string | null>(null);
    const both = async () => {
        setBusy(true);
        try {
            await act(run, ["stop", "remove"]);
            onClose();
            detach(run.id);
            forget(run.id);
        } catch (e) {
            setError(errorText(e));
            setBusy(false);
        }
    };
    const foot = (
        <>
            <Button label="Cancel" disabled={busy} onClick={onClose} />
            <Button kind="danger" label={busy ? "Stopping..." : "Detach + Stop"} disabled={busy} onClick={() => void both()} />
            <Button kind="primary" label="Detach" disabled={busy} onClick={() => { onClose(); detach(run.id); }} />
        </>
    );
    return (
        <Modal title="Detach this run?" onClose={onClose} closable={!busy} foot={foot}>
            <p><strong>{run.taskId}</strong>{run.model !== "unknown" && ` · ${run.model}`} is still running.</p>
            <p class="dim">Detaching takes it off the sidebar; it goes on and stays in the list. Stopping ends the agent and removes its container; the results directory stays.</p>
            {error && <Notice tone="bad">{error}</Notice>}
        </Modal>
    );
}
