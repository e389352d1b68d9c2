// The log of a run.

import { useEffect, useState } from "preact/hooks";
import { errorText } from "../lib/api";
import { Badge, Blank, Notice, saveBlob } from "../parts/basics";
import type { Run } from "../protocol";
import { RunLog, fetchLog } from "../stores/logs";
import { LogList, NoLogs } from "./log-list";

function State({ log }: { log: RunLog }) {
    switch (log.state.value) {
    case "streaming": return <Badge tone="ok">Streaming</Badge>;
    case "connecting": return <Badge>Connecting</Badge>;
    case "interrupted": return <Badge tone="warn">Reconnecting</Badge>;
    case "error": return <Badge tone="bad" title={log.error.value ?? undefined}>Error</Badge>;
    case "ended": return <Badge>{log.exitCode.value === null ? "Ended" : `Ended, exit ${log.exitCode.value}`}</Badge>;
    }
}

export function LogsPane({ run }: { run: Run }) {
    const [log, setLog] = useState<RunLog | null>(null);
    const [saving, setSaving] = useState(false);
    const [unsaved, setUnsaved] = useState<string | null>(null);
    useEffect(() => {
        let opened: RunLog | null = null;
        // A tab that is only passed through opens nothing.
        const timer = setTimeout(() => setLog((opened = new RunLog(run))), 60);
        return () => {
            clearTimeout(timer);
            opened?.close();
        };
    }, [run.id, run.source]);
    if (!log) return null;
    const empty = log.error.value ? <Blank tone="bad" title="The log cannot be read">{log.error.value}</Blank> : <NoLogs />;
    const save = async () => {
        setSaving(true);
        try {
            saveBlob(`${run.id}.log`, await fetchLog(run));
            setUnsaved(null);
        } catch (error) {
            setUnsaved(errorText(error));
        }
        setSaving(false);
    };
    return <LogList lines={log.lines} label="Logs" state={<State log={log} />} empty={empty} saving={saving} onSave={() => void save()}
        notice={unsaved && <Notice tone="bad">The log was not saved: {unsaved}</Notice>} />;
}
