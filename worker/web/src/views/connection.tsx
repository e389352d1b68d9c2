// How this page reaches the server, and what to change where the two disagree.

import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { ApiError, errorText, getDocument, token } from "../lib/api";
import { channels } from "../lib/channel";
import { ago } from "../lib/format";
import { Badge, Button, CopyButton, Notice } from "../parts/basics";
import type { Tone } from "../parts/basics";
import type { ConnectionReport } from "../protocol";
import { CONNECTION } from "../protocol";
import { checkHealth, health, healthError, roundTripMs } from "../stores/session";

const report = signal<ConnectionReport | null>(null);
const reportError = signal<string | null>(null);

async function load(): Promise<void> {
    void checkHealth();
    try {
        report.value = await getDocument(CONNECTION, "connection");
        reportError.value = null;
    } catch (error) {
        report.value = null;
        reportError.value = error instanceof ApiError && error.status === 404 ? "This server does not tell how it sees the page." : errorText(error);
    }
}

interface Line { readonly name: string; readonly page: string; readonly server: string | null; readonly fix: string | null }

const withoutDefaultPort = (host: string) => host.replace(/:(80|443)$/, "").toLowerCase();

/** Whose token it is, what it may do, when it ends. */
function tokenText(server: ConnectionReport): string {
    if (!server.tokenRequired) return "not asked for";
    if (!server.tokenName) return "asked for";
    const end = server.tokenExpires ? `ends ${server.tokenExpires}` : "does not end";
    return `${server.tokenName}, role ${server.role ?? "unknown"}, ${end}`;
}

function lines(server: ConnectionReport | null): Line[] {
    const scheme = location.protocol.slice(0, -1);
    const base = new URL(document.baseURI).pathname;
    const list: Line[] = [
        { name: "Host", page: location.host, server: server?.host ?? null,
            fix: server && withoutDefaultPort(server.host) !== withoutDefaultPort(location.host) ? `A proxy changes Host. Let it pass the one it received (nginx: proxy_set_header Host $http_host), or list ${location.origin} in SSEBENCH_WEBUI_CORS_ORIGINS.` : null },
        { name: "Scheme", page: scheme, server: server?.scheme ?? null,
            fix: server && server.scheme !== scheme ? `A proxy ends TLS. List ${location.origin} in SSEBENCH_WEBUI_CORS_ORIGINS if requests are refused for their Origin.` : null },
        { name: "Base path", page: base.replace(/\/$/, "") || "/", server: server?.basePath ?? null,
            fix: server && server.basePath.replace(/\/$/, "") !== base.replace(/\/$/, "") ? `Start the server with SSEBENCH_WEBUI_BASE_PATH=${base.replace(/\/$/, "") || "/"}, or let the proxy pass the path unchanged.` : null },
        { name: "Token", page: token.value === null ? "none held" : "held by this tab", server: server ? tokenText(server) : null, fix: null },
    ];
    if (server) {
        list.push({ name: "Origin", page: location.origin, server: server.origin ?? "not sent with this request", fix: null });
        list.push({ name: "Peer", page: "", server: server.peerUid == null ? server.peer : `${server.peer} (account ${server.peerUid})`, fix: null });
        if (server.forwardedFor) list.push({ name: "Forwarded for", page: "", server: server.forwardedFor, fix: null });
        if (server.allowedOrigins?.length) list.push({ name: "Allowed origins", page: "", server: server.allowedOrigins.join(", "), fix: null });
    }
    return list;
}

const STATES: Record<string, Tone> = { open: "ok", connecting: "info", waiting: "warn", closed: "plain" };

function Sockets() {
    const list = channels.value;
    if (list.length === 0) return <p class="dim">No connection is open.</p>;
    return (
        <table class="plain-table">
            <thead><tr><th scope="col">WebSocket</th><th scope="col">State</th><th scope="col">Last message</th><th scope="col" class="number">Reconnects</th><th scope="col">Last close</th></tr></thead>
            <tbody>{list.map((channel, i) => (
                <tr key={i}><td>{channel.name}</td><td><Badge tone={STATES[channel.state] ?? "plain"}>{channel.state}</Badge></td><td>{channel.lastMessage ? ago(channel.lastMessage) : "none yet"}</td><td class="number">{channel.reconnects}</td><td>{channel.reason || "–"}</td></tr>
            ))}</tbody>
        </table>
    );
}

export function ConnectionView() {
    useEffect(() => {
        void load();
        const timer = setInterval(() => void load(), 5_000);
        return () => clearInterval(timer);
    }, []);
    const server = report.value;
    const rows = lines(server);
    const text = () => JSON.stringify({ page: { address: location.href, base: document.baseURI }, server, health: health.value, channels: channels.value }, null, 2);
    return (
        <div class="scroll">
            <header class="view-head"><h1>Connection</h1><span class="grow" /><CopyButton bare={false} label="Copy report" text={text} /><Button icon="refresh" label="Check again" onClick={() => void load()} /></header>
            <div class="settings">
                {healthError.value && <Notice tone="bad">{healthError.value}</Notice>}
                {reportError.value && !healthError.value && <Notice tone="info">{reportError.value}</Notice>}
                {rows.filter((row) => row.fix).map((row) => <Notice key={row.name} tone="warn"><strong>{row.name}:</strong> {row.fix}</Notice>)}
                <section><h2>Server</h2>
                    <dl class="facts grid">
                        <div><dt>Round trip</dt><dd>{roundTripMs.value === null ? "–" : `${roundTripMs.value.toFixed(1)} ms`}</dd></div>
                        <div><dt>Version</dt><dd>{health.value?.version ?? "–"}</dd></div>
                        <div><dt>Backend</dt><dd>{health.value?.backend ?? "–"}</dd></div>
                        <div><dt>Runner</dt><dd>{health.value?.runner ? "answers" : health.value?.runnerError ?? "does not answer"}</dd></div>
                        <div><dt>Terminal</dt><dd>{health.value?.terminalHint ?? (health.value?.terminal === false ? "off" : "on")}</dd></div>
                        <div><dt>Mode</dt><dd>{health.value?.role === "view" ? "read-only (token)" : health.value?.hosted ? "read-only (hosted)" : health.value?.role ?? "full"}</dd></div>
                    </dl>
                </section>
                <section><h2>Address</h2>
                    <table class="plain-table">
                        <thead><tr><th scope="col">What</th><th scope="col">This page</th><th scope="col">As the server sees it</th></tr></thead>
                        <tbody>{rows.map((row) => <tr key={row.name}><th scope="row">{row.name}</th><td><code>{row.page || "–"}</code></td><td><code>{row.server ?? "–"}</code>{row.fix && <Badge tone="warn">differs</Badge>}</td></tr>)}</tbody>
                    </table>
                </section>
                <section><h2>WebSockets</h2><Sockets /></section>
            </div>
        </div>
    );
}
