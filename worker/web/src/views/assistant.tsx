// The assistant: conversations about a run with a model inside its container.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Message, Part } from "../lib/conversation";
import { lookup } from "../lib/lookup";
import { presetsFor } from "../lib/presets";
import { address } from "../lib/route";
import { short } from "../lib/format";
import type { Tone } from "../parts/basics";
import { Badge, Blank, Button, Notice } from "../parts/basics";
import { LongText } from "../parts/long-text";
import { Markdown } from "../parts/markdown";
import { Modal } from "../parts/modal";
import type { Feed } from "../stores/feed";
import type { Asked, Assistant } from "../stores/assistant";
import { holdAssistant, releaseAssistant } from "../stores/assistant";
import { settings } from "../stores/settings";

const TITLE_MAX = 50;
/** The field grows with its text up to this many pixels. */
const INPUT_MAX = 200;
const TONES: Record<string, Tone> = { running: "info", success: "ok", error: "bad" };

function PartView({ part }: { part: Part }) {
    if (part.kind === "text") return <Markdown text={part.text} name="answer.md" />;
    if (part.kind === "thinking") return <details class="chat-fold"><summary>Thinking</summary><LongText text={part.text} name="thinking.txt" className="wrap prose" /></details>;
    return (
        <details class="chat-fold">
            <summary><code>{part.name}</code> <Badge tone={lookup(TONES, part.status) ?? "plain"}>{part.status}</Badge></summary>
            {part.input && <LongText text={part.input} name="input.txt" />}
            {part.output && <LongText text={part.output} name="output.txt" />}
            {part.error && <LongText text={part.error} name="error.txt" className="bad" />}
        </details>
    );
}

function MessageView({ message }: { message: Message }) {
    if (message.role === "user") return <div class="bubble"><p class="bubble-name">You</p><div class="wrap">{message.parts.map((part) => (part.kind === "text" ? part.text : "")).join("\n")}</div></div>;
    return (
        <div class="answer">
            {message.parts.map((part, i) => <PartView key={i} part={part} />)}
            {message.error && <p class="bad">{message.error}</p>}
            {message.tokens && (message.tokens.in > 0 || message.tokens.out > 0) && <p class="tokens dim">{short(message.tokens.in)} in · {short(message.tokens.out)} out</p>}
        </div>
    );
}

const PERMISSIONS: Record<string, string> = {
    bash: "Execute Command", edit: "Edit File", write: "Create File", read: "Read File", external_directory: "Access External Directory",
};

function AskPermission({ permission, assistant }: { permission: Asked; assistant: Assistant }) {
    const reply = (allow: boolean, always = false) => void assistant.reply(permission, allow, always);
    const foot = <><Button kind="danger" label="Deny" onClick={() => reply(false)} /><Button label="Always Allow" onClick={() => reply(true, true)} /><Button kind="primary" label="Allow" onClick={() => reply(true)} /></>;
    return (
        <Modal title={lookup(PERMISSIONS, permission.type) ?? "Permission Required"} onClose={() => reply(false)} foot={foot}>
            <p>The assistant asks for permission{permission.type ? <> (<code>{permission.type}</code>)</> : null}.</p>
            {permission.type === "bash" && <Notice tone="warn">The command runs inside the run's container.</Notice>}
            {permission.patterns.map((pattern, i) => <pre key={i} class="paste-text" tabIndex={0}>{pattern}</pre>)}
            {permission.metadata && <details class="chat-fold"><summary>Details</summary><LongText text={permission.metadata} name="permission.json" /></details>}
            <p class="dim">“Always Allow” holds for this kind of request as long as this conversation is open.</p>
        </Modal>
    );
}

function Sessions({ assistant }: { assistant: Assistant }) {
    const [removing, setRemoving] = useState<string | null>(null);
    const sessions = assistant.sessions.value, current = assistant.session.value;
    return (
        <nav class="chat-sessions" aria-label="Conversations">
            <Button icon="plus" label="New conversation" pressed={current === null} onClick={() => assistant.open(null)} />
            {assistant.sessionsError.value && <p class="dim">{assistant.sessionsError.value}</p>}
            {sessions?.length === 0 && <p class="dim">No conversations yet</p>}
            <ul>{(sessions ?? []).map((session) => (
                <li key={session.id} class="open-run">
                    <button type="button" class="chat-session" aria-pressed={session.id === current} title={session.title} onClick={() => assistant.open(session.id)}>
                        {session.title.length > TITLE_MAX ? `${session.title.slice(0, TITLE_MAX)}…` : session.title}
                        {session.summary && session.summary.files > 0 && <span class="chat-summary"><span class="added">+{session.summary.additions}</span> <span class="removed">−{session.summary.deletions}</span></span>}
                    </button>
                    <Button kind="quiet" bare icon="trash" label={`Delete ${session.title}`} onClick={() => setRemoving(session.id)} />
                </li>
            ))}</ul>
            {removing && <Modal title="Delete this conversation?" onClose={() => setRemoving(null)} foot={<><Button label="Cancel" onClick={() => setRemoving(null)} /><Button kind="danger" label="Delete" onClick={() => { void assistant.remove(removing); setRemoving(null); }} /></>}>
                <p>Its messages are deleted in the run's container. Changes that it made to files stay.</p></Modal>}
        </nav>
    );
}

function Input({ assistant, text, setText, ready }: { assistant: Assistant; text: string; setText: (text: string) => void; ready: boolean }) {
    const field = useRef<HTMLTextAreaElement>(null);
    useEffect(() => {
        const element = field.current!;
        element.style.height = "auto";
        element.style.height = `${Math.min(element.scrollHeight + 2, INPUT_MAX)}px`;
    }, [text]);
    const send = async () => {
        const message = text.trim();
        if (!message || assistant.busy.value || !ready) return;
        setText("");
        if (!(await assistant.send(message))) setText(message);
    };
    const key = (event: KeyboardEvent) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        void send();
    };
    return (
        <div class="chat-input">
            <textarea ref={field} rows={1} aria-label="Message to the assistant" placeholder={ready ? "Ask about this run" : "Waiting for the project"} disabled={!ready} value={text} onKeyDown={key} onInput={(event) => setText(event.currentTarget.value)} />
            {assistant.busy.value ? <Button icon="stop" label="Stop" onClick={() => void assistant.stop()} />
                : <Button kind="primary" label="Send" disabled={!text.trim() || !ready} onClick={() => void send()} />}
        </div>
    );
}

function Conversation({ assistant, feed, onPreset }: { assistant: Assistant; feed: Feed; onPreset: (prompt: string) => void }) {
    const end = useRef<HTMLDivElement>(null);
    const messages = assistant.messages.value, live = assistant.live.value, sending = assistant.sending.value;
    const stored = sending !== null && messages.some((m) => m.role === "user" && m.parts.some((p) => p.kind === "text" && p.text === sending));
    useEffect(() => end.current?.scrollIntoView({ block: "end" }), [messages, live, sending]);
    const project = feed.project.value;
    if (messages.length === 0 && sending === null && assistant.session.value === null)
        return <div class="chat-log"><ul class="presets">{presetsFor(project?.source ?? "", project?.language ?? "", feed.reference.value ?? "").map((preset) => (
            <li key={preset.title}><button type="button" class="preset" onClick={() => onPreset(preset.prompt)}><strong>{preset.title}</strong><span class="dim">{preset.what}</span></button></li>))}</ul></div>;
    return (
        <div class="chat-log" tabIndex={0} role="log" aria-label="Conversation">
            {messages.map((message, i) => <MessageView key={message.id || i} message={message} />)}
            {sending !== null && !stored && <div class="bubble"><p class="bubble-name">You</p><div class="wrap">{sending}</div></div>}
            {assistant.busy.value && <div class="answer">{live.map((part) => <PartView key={`${part.kind}${part.id}`} part={part} />)}<p class="dim" role="status"><span class="dot busy" aria-hidden="true" /> Generating response...</p></div>}
            <div ref={end} />
        </div>
    );
}

function Chat({ assistant, feed }: { assistant: Assistant; feed: Feed }) {
    const [text, setText] = useState("");
    const { health, error } = assistant;
    const source = feed.project.value?.source ?? null;
    const proxied = health.value?.proxyModel;
    const asked = assistant.permissions.value[0];
    return (
        <div class="chat">
            {error.value && (assistant.expired.value
                ? <Notice tone="warn" action={<Button label="Start New Conversation" onClick={() => assistant.open(null)} />}><strong>Session Expired.</strong> {error.value}</Notice>
                : <Notice tone="bad" action={<Button kind="quiet" bare icon="close" label="Dismiss" onClick={() => (error.value = null)} />}><strong>The assistant reported an error.</strong> {error.value}</Notice>)}
            {assistant.notice.value && <Notice tone="info">{assistant.notice.value}</Notice>}
            {assistant.retry.value && <Notice tone="warn">{assistant.retry.value}</Notice>}
            <Conversation assistant={assistant} feed={feed} onPreset={setText} />
            <p class="chat-status dim">OpenCode connected · {proxied ? `${proxied} through the LiteLLM proxy` : "your Anthropic API key"}</p>
            <Input assistant={assistant} text={text} setText={setText} ready={source !== null} />
            {asked && <AskPermission key={asked.id} permission={asked} assistant={assistant} />}
        </div>
    );
}

function Body({ assistant, feed }: { assistant: Assistant; feed: Feed }) {
    const health = assistant.health.value;
    if (assistant.unavailable.value) return <Blank tone="bad" title="OpenCode Server Unavailable">{assistant.unavailable.value}<p><Button label="Try again" onClick={() => void assistant.checkHealth()} /></p></Blank>;
    if (!health) return <Blank busy title="Asking for the assistant" />;
    if (!health.healthy && health.processRunning) return <Blank busy title="Starting OpenCode Server">This takes a few seconds.</Blank>;
    if (!health.healthy) return <Blank tone="bad" title="OpenCode Server Unavailable">{health.reason ?? "The run may have ended, its image may hold no OpenCode, or the backend cannot run commands in it."}<p><Button label="Try again" onClick={() => void assistant.checkHealth()} /></p></Blank>;
    if (!health.proxyModel && !settings.value.anthropicApiKey && assistant.session.value === null)
        return <Blank title="API Key Required">This run has no model of its own. Save an Anthropic API key to talk to the assistant.<p><a class="button primary" href={address(["settings"])}>Open Settings</a></p></Blank>;
    return <Chat assistant={assistant} feed={feed} />;
}

export function AssistantPane({ feed }: { feed: Feed }) {
    const [assistant, setAssistant] = useState<Assistant | null>(null);
    useEffect(() => {
        setAssistant(holdAssistant(feed.run.id, () => feed.project.value?.source ?? null));
        return () => releaseAssistant(feed.run.id);
    }, [feed]);
    if (!assistant) return null;
    return <div class="assistant"><Sessions assistant={assistant} /><div class="chat-main"><Body assistant={assistant} feed={feed} /></div></div>;
}
