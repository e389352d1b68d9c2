// A shell in the run's container.

import { useEffect, useRef, useState } from "preact/hooks";
import { effect } from "@preact/signals";
import { errorText } from "../lib/api";
import type { TerminalView } from "../lib/terminal";
import { Badge, Blank, Button } from "../parts/basics";
import type { Tone } from "../parts/basics";
import { Modal } from "../parts/modal";
import type { Run } from "../protocol";
import { known } from "../stores/opened";
import { change, settings } from "../stores/settings";

const MIN_FONT = 8, MAX_FONT = 24;
const PASTE_SHOWN = 2_000;
const STATES: Record<string, readonly [Tone, string]> = {
    connecting: ["plain", "Connecting"], open: ["ok", "Connected"], exited: ["plain", "Ended"], lost: ["warn", "Disconnected"], error: ["bad", "Error"],
};

function Find({ view, onClose }: { view: TerminalView; onClose: () => void }) {
    const [text, setText] = useState("");
    const [found, setFound] = useState(true);
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current?.focus(), []);
    const find = (back: boolean) => setFound(text === "" || view.find(text, back));
    const key = (event: KeyboardEvent) => {
        if (event.key === "Enter") find(event.shiftKey);
        if (event.key === "Escape") onClose();
    };
    return (
        <span class="terminal-find">
            <input ref={field} type="text" aria-label="Search the terminal" value={text} aria-invalid={!found} onKeyDown={key} onInput={(event) => setText(event.currentTarget.value)} />
            <Button kind="quiet" bare icon="up" label="Previous" onClick={() => find(true)} />
            <Button kind="quiet" bare icon="down" label="Next" onClick={() => find(false)} />
            <Button kind="quiet" bare icon="close" label="Close search" onClick={onClose} />
        </span>
    );
}

function AskPaste({ view, text }: { view: TerminalView; text: string }) {
    const lines = text.trimEnd().split("\n").length;
    const no = () => {
        view.askPaste.value = null;
        view.focus();
    };
    return (
        <Modal title={`Paste ${lines} lines?`} onClose={no} foot={<><Button label="Cancel" onClick={no} /><Button kind="primary" label="Paste" onClick={() => view.paste(text)} /></>}>
            <p class="dim">Each line may run as a command at once.</p>
            <pre class="paste-text" tabIndex={0}>{text.slice(0, PASTE_SHOWN)}{text.length > PASTE_SHOWN ? "\n…" : ""}</pre>
        </Modal>
    );
}

function Shell({ run, view, place }: { run: Run; view: TerminalView | null; place: preact.RefObject<HTMLDivElement | null> }) {
    const [finding, setFinding] = useState(false);
    const state = view?.state.value ?? "connecting";
    const [tone, word] = STATES[state]!;
    const size = settings.value.terminalFontSize;
    const ended = state === "exited" || state === "lost" || state === "error";
    return (
        <div class="pane terminal-pane">
            <div class="pane-tools">
                <Badge tone={tone}>{word}</Badge>
                {view?.watching.value && state === "open" && <Badge tone="warn">Read only</Badge>}
                {view?.message.value && <span class="dim terminal-message">{view.message.value}</span>}
                <span class="grow" />
                {finding && view && <Find view={view} onClose={() => { setFinding(false); view.endFind(); }} />}
                <span class="button-row">
                    <Button kind="quiet" label="A−" aria-label="Smaller text" disabled={size <= MIN_FONT} onClick={() => change({ terminalFontSize: size - 1 })} />
                    <Button kind="quiet" label="A+" aria-label="Bigger text" disabled={size >= MAX_FONT} onClick={() => change({ terminalFontSize: size + 1 })} />
                    <Button kind="quiet" bare icon="search" label="Search" pressed={finding} onClick={() => setFinding(!finding)} />
                    <Button kind="quiet" label="Clear" disabled={!view} onClick={() => view?.clear()} />
                    {state === "lost" && view?.takenOver.value && <Button kind="quiet" label="Watch" onClick={() => view.watch()} />}
                    {state === "lost" && <Button kind="primary" label="Reconnect" onClick={() => view?.reconnect()} />}
                    {state === "open" && view?.watching.value && <Button kind="primary" label="Take over" onClick={() => view.reconnect()} />}
                    <Button kind={ended && state !== "lost" ? "primary" : "quiet"} label="Restart" disabled={!view} onClick={() => view?.restart()} />
                </span>
            </div>
            <div class="terminal-place" ref={place} aria-label={`Terminal in ${run.taskId}`} role="group" />
            {view?.askPaste.value != null && <AskPaste view={view} text={view.askPaste.value} />}
        </div>
    );
}

function LiveTerminal({ run }: { run: Run }) {
    const place = useRef<HTMLDivElement>(null);
    const [view, setView] = useState<TerminalView | null>(null);
    const [error, setError] = useState<string | null>(null);
    useEffect(() => {
        let made: TerminalView | null = null, gone = false, stop = () => {};
        import("../lib/terminal").then(({ TerminalView }) => {
            if (gone || !place.current) return;
            made = new TerminalView(place.current, `pty/${encodeURIComponent(run.id)}`, `ssebench:terminal:${run.id}`, settings.peek());
            const opened = made;
            stop = effect(() => opened.apply(settings.value));
            setView(made);
            made.focus();
        }, (e: unknown) => setError(errorText(e)));
        return () => {
            gone = true;
            stop();
            made?.dispose();
        };
    }, [run.id]);
    if (error) return <Blank tone="bad" title="The terminal cannot be loaded">{error}</Blank>;
    return <Shell run={run} view={view} place={place} />;
}

export function TerminalPane({ run }: { run: Run }) {
    // Its container is there before it runs: a shell that was asked for now would be refused.
    if ((known.value.get(run.id) ?? run).status === "created") return <Blank busy title="The run is starting" />;
    return <LiveTerminal run={run} />;
}
