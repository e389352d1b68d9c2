// OpenCode's messages and events, read field by field into what the assistant's chat shows.

import { lookup } from "./lookup";
import { isRecord } from "./shape";

export type Part =
    | { readonly kind: "text"; readonly id: string; readonly text: string }
    | { readonly kind: "thinking"; readonly id: string; readonly text: string }
    | {
        readonly kind: "tool"; readonly id: string; readonly name: string; readonly status: "running" | "success" | "error";
        readonly input: string; readonly output: string; readonly error: string;
    };

export interface Message {
    readonly id: string;
    readonly role: "user" | "assistant";
    readonly parts: readonly Part[];
    readonly tokens: { readonly in: number; readonly out: number } | null;
    readonly error: string | null;
}

export interface Permission {
    readonly id: string;
    readonly type: string;
    readonly patterns: readonly string[];
    readonly metadata: string;
}

const text = (value: unknown): string => (typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value, null, 2) ?? "");
const number = (value: unknown): number => (typeof value === "number" && Number.isFinite(value) ? value : 0);

const UNREACHABLE = /refused|ENOTFOUND|EAI_AGAIN|getaddrinfo|fetch failed|timed? ?out|network|socket/i;

/** A provider's error for people; null when `error` is none, or only says that the user stopped it. */
export function providerError(error: unknown): string | null {
    if (!isRecord(error) || error.name === "MessageAbortedError") return null;
    const data = isRecord(error.data) ? error.data : {};
    const message = text(data.message) || text(error.name) || "The assistant failed";
    const status = typeof data.statusCode === "number" ? ` (HTTP ${data.statusCode})` : "";
    const hint = UNREACHABLE.test(message) ? " The run's network may be restricted so that the provider cannot be reached." : "";
    return `${message}${status}${hint}`;
}

const TOOL_STATUS: Record<string, "running" | "success" | "error"> = { pending: "running", running: "running", completed: "success", error: "error" };

export function readPart(raw: unknown): Part | null {
    if (!isRecord(raw)) return null;
    const id = text(raw.id) || text(raw.callID) || text(raw.tool_use_id);
    switch (raw.type) {
    case "text": return { kind: "text", id, text: text(raw.text) };
    case "thinking": return { kind: "thinking", id, text: text(raw.thinking) };
    case "reasoning": return { kind: "thinking", id, text: text(raw.text) };
    case "tool_use": return { kind: "tool", id, name: text(raw.name) || "tool", status: "running", input: text(raw.input), output: "", error: "" };
    case "tool_result":
        return { kind: "tool", id: text(raw.tool_use_id), name: "unknown", status: raw.is_error ? "error" : "success", input: "", output: raw.is_error ? "" : text(raw.content), error: raw.is_error ? text(raw.content) : "" };
    case "tool": {
        const state = isRecord(raw.state) ? raw.state : {};
        return { kind: "tool", id: text(raw.callID) || id, name: text(raw.tool) || "tool", status: lookup(TOOL_STATUS, text(state.status)) ?? "running", input: text(state.input), output: text(state.output), error: text(state.error) };
    }
    default: return null;
    }
}

/** A result laid over the use it belongs to. */
function pairTools(parts: readonly Part[]): Part[] {
    const list: Part[] = [];
    for (const part of parts) {
        const at = part.kind === "tool" && part.name === "unknown" ? list.findIndex((p) => p.kind === "tool" && p.id === part.id) : -1;
        const use = list[at];
        if (use?.kind === "tool" && part.kind === "tool") list[at] = { ...part, name: use.name, input: use.input };
        else list.push(part);
    }
    return list;
}

export function readMessages(body: unknown): Message[] {
    const raws = Array.isArray(body) ? body : isRecord(body) && Array.isArray(body.messages) ? body.messages : [];
    const messages: Message[] = [];
    for (const raw of raws) {
        if (!isRecord(raw) || !isRecord(raw.info)) continue;
        const { info } = raw, tokens = isRecord(info.tokens) ? { in: number(info.tokens.input), out: number(info.tokens.output) } : null;
        const parts = (Array.isArray(raw.parts) ? raw.parts : []).map(readPart).filter((part) => part !== null);
        messages.push({ id: text(info.id), role: info.role === "user" ? "user" : "assistant", parts: pairTools(parts), tokens, error: providerError(info.error) });
    }
    return messages;
}

export function readPermission(properties: Record<string, unknown>): Permission | null {
    const id = text(properties.id);
    if (!id) return null;
    const patterns = (Array.isArray(properties.patterns) ? properties.patterns : []).map(text);
    return { id, type: text(properties.permission) || text(properties.type), patterns, metadata: isRecord(properties.metadata) && Object.keys(properties.metadata).length ? text(properties.metadata) : "" };
}
