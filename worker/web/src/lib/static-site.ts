// Answers for a site without a server (an export of finished runs): the same requests, out of
// files. data/health.json, data/runs.json, and one data/runs/ID.json a run.

import { isRecord } from "./shape";

const answer = (status: number, body: unknown) =>
    new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });

async function file(name: string): Promise<unknown> {
    const response = await fetch(new URL(`data/${name}`, document.baseURI));
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    return response.json();
}

/** The last run that was read: its parts are asked for one after the other. */
let cached: { readonly id: string; readonly run: Promise<unknown> } | null = null;

async function runFile(id: string): Promise<Record<string, unknown> | null> {
    if (cached?.id !== id) cached = { id, run: file(`runs/${encodeURIComponent(id)}.json`) };
    const run = await cached.run.catch(() => null);
    return isRecord(run) ? run : null;
}

/** The parts of a run's file as the server would answer them. */
function part(run: Record<string, unknown>, name: string): Response {
    switch (name) {
    case "": return answer(200, { container: run.container });
    case "project": return run.project ? answer(200, run.project) : answer(404, { error: "The run left no project" });
    case "diff": return typeof run.diff === "string" ? answer(200, { diff: run.diff }) : answer(404, { error: "The run left no diff" });
    case "files": return answer(200, { files: run.files ?? [] });
    case "agent/dialog": return answer(200, { entries: run.dialog ?? [], truncated: run.dialogTruncated === true });
    case "result": return answer(200, run.result ?? { available: false });
    case "logs": return new Response(typeof run.logs === "string" ? run.logs : "", { headers: { "Content-Type": "text/plain" } });
    case "reference/patch": return answer(200, { diff: run.referencePatch ?? "" });
    case "review": {
        const text = isRecord(run.review) ? run.review.text : run.review;
        return typeof text === "string" && text ? answer(200, { available: true, text }) : answer(200, { available: false });
    }
    default: return answer(404, { error: "Not part of this showcase" });
    }
}

export async function staticAnswer(path: string, init: RequestInit): Promise<Response> {
    if (init.method && init.method !== "GET") return answer(403, { error: "This is a read-only showcase" });
    const [name = ""] = path.split("?", 1);
    if (name === "health") return answer(200, await file("health.json"));
    // Without a total the page sorts and filters by itself.
    if (name === "containers") return answer(200, await file("runs.json"));
    const match = /^containers\/([^/]+)(?:\/(.+))?$/.exec(name);
    if (!match) return answer(404, { error: "Not part of this showcase" });
    const run = await runFile(decodeURIComponent(match[1]!));
    return run ? part(run, match[2] ?? "") : answer(404, { error: "Run not found" });
}

/** What a WebSocket at `path` would send: the kept log, line by line. */
export async function staticMessages(path: string): Promise<Record<string, unknown>[]> {
    const match = /^containers\/([^/]+)\/logs-ws/.exec(path);
    const run = match ? await runFile(decodeURIComponent(match[1]!)) : null;
    if (!run) return [];
    const lines = typeof run.logs === "string" ? run.logs.split("\n").filter((line) => line.trim() !== "") : [];
    return [...lines.map((data) => ({ type: "log", data })), { type: "end", data: { exitCode: 0 } }];
}
