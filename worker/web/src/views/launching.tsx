// One launch on its way: state, command, output.

import { useEffect, useState } from "preact/hooks";
import { errorText } from "../lib/api";
import { ago, dateTime } from "../lib/format";
import { address, go, route } from "../lib/route";
import { Badge, Blank, Button, CopyButton, Notice, saveText } from "../parts/basics";
import { cancel, clear, launches } from "../stores/launches";
import { channels } from "../lib/channel";
import { LogList } from "./log-list";

const WORDS = { launching: ["info", "Launching"], running: ["ok", "Running"], failed: ["bad", "Failed"] } as const;

export function LaunchingView() {
    const id = route.value.path[1] ?? "";
    const entry = launches.value.get(id);
    const [error, setError] = useState<string | null>(null);
    useEffect(() => setError(null), [id]);
    const ready = channels.value.some((channel) => channel.name === "launches" && channel.state === "open");
    if (!entry) return ready ? <Blank top title="Launch not found"><a href={address(["runs"])}>To the run list</a></Blank>   : <Blank top busy title="Loading the launch" />;
    const launch = entry.state;
    const [tone, word] = WORDS[launch?.status ?? "launching"];
    const act = (what: Promise<void>) => what.catch((e: unknown) => setError(errorText(e)));
    return (
        <div class="launching">
            <header class="run-head">
                <div class="run-title"><h1>{launch?.taskId ?? id}</h1><Badge tone={tone}>{word}</Badge></div>
                <div class="run-facts">{launch && <span title={dateTime(launch.startTime)}>started {ago(launch.startTime)}</span>}</div>
                <span class="grow" />
                {launch?.status === "launching" && <Button kind="danger" icon="stop" label="Cancel" onClick={() => void act(cancel(id))} />}
                {launch?.status === "failed" && <Button label="Dismiss" onClick={() => { void clear(id); go(address(["runs"])); }} />}
            </header>
            {launch?.command && <div class="command slim"><pre tabIndex={0}>{launch.command}</pre><CopyButton text={() => launch.command} /></div>}
            {!!launch?.queuePosition && <Notice tone="info">Waiting for its turn: number {launch.queuePosition} in line.</Notice>}
            {launch?.outputError && <Notice tone="warn">The output is incomplete: {launch.outputError}</Notice>}
            {launch?.error && <Notice tone="bad">{launch.error}</Notice>}
            {error && <Notice tone="bad">{error}</Notice>}
            <div class="launch-log">
                <LogList lines={entry.lines} label="Launch output" state={null} empty={<Blank busy={launch?.status === "launching"} title="Waiting for logs..." />}
                    onSave={() => saveText(`launch-${id}.log`, `${entry.lines.lines.join("\n")}\n`)} />
            </div>
        </div>
    );
}
