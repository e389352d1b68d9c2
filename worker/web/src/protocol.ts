// Every document and message that page and server exchange, described once: types for the
// page, checks at run time, and (through the build) a table for the server's tests.
//
// The page sends `Authorization: Bearer <token>` when it holds a token, and offers the
// WebSocket subprotocols `ssebench` and `ssebench.token.<base64url of the token>`.

import type { TypeOf } from "./lib/shape";
import { any, boolean, list, literal, map, nullOr, number, object, optional, string, variants } from "./lib/shape";

/** GET api/health */
export const HEALTH = object({
    status: string,
    version: optional(string),
    runner: boolean,
    docker: optional(boolean),
    backend: nullOr(string),
    runnerError: optional(string),
    terminal: optional(boolean),
    terminalHint: optional(string),
    assistant: optional(boolean),
    hosted: optional(boolean),
    /** What the token of the request may do: view, operate, full. */
    role: optional(string),
    timestamp: optional(string),
});
export type Health = TypeOf<typeof HEALTH>;

export const RUN_STATUS = literal("running", "exited", "paused", "created", "unknown");
export const GRADE_STATUS = literal("passed", "failed", "error");

/** One run of a listing. The fields after `source` are absent on other servers. */
export const RUN = object({
    id: string,
    name: string,
    taskId: string,
    model: string,
    agent: string,
    image: string,
    referenceRun: optional(boolean),
    runId: optional(string),
    status: RUN_STATUS,
    createdAt: string,
    source: literal("container", "results"),
    grade: optional(nullOr(string)),
    spend: optional(nullOr(number)),
    startedAt: optional(nullOr(string)),
    durationSeconds: optional(nullOr(number)),
    mode: optional(nullOr(string)),
    difficulty: optional(nullOr(number)),
});
export type Run = TypeOf<typeof RUN>;
export type RunStatus = TypeOf<typeof RUN_STATUS>;

/**
 * GET api/containers
 *   ?limit=&offset=&sort=&order=asc|desc&q=&task=&model=&agent=&status=&grade=
 * `total` counts the runs that fit the filter; a server that does not page leaves it out.
 */
export const RUN_LIST = object({
    containers: list(RUN),
    total: optional(number),
    runnerError: optional(string),
    /** Why finished runs are missing for good, where some are. */
    resultsCut: optional(string),
});
export type RunList = TypeOf<typeof RUN_LIST>;

/** GET api/containers/ID */
export const ONE_RUN = object({ container: RUN });

/** GET api/containers/ID/project */
export const PROJECT = object({
    id: string,
    project: string,
    language: string,
    source: string,
    task_description: optional(nullOr(object({
        issue: optional(nullOr(string)),
        bug_description: optional(nullOr(string)),
        crash_report: optional(nullOr(list(string))),
    }))),
    poc: optional(nullOr(list(string))),
});
export type Project = TypeOf<typeof PROJECT>;

/** GET api/containers/ID/files */
export const CHANGED_FILE = object({ path: string, status: string, additions: number, deletions: number });
export const FILES = object({ files: list(CHANGED_FILE) });
export type ChangedFile = TypeOf<typeof CHANGED_FILE>;

/** GET api/containers/ID/diff and …/reference/patch (an empty diff: there is none) */
export const DIFF = object({ diff: string });

/** GET api/containers/ID/review */
export const REVIEW = object({ available: boolean, text: optional(string) });
export type Review = TypeOf<typeof REVIEW>;

/** GET api/containers/ID/result */
export const PATCH_RESULT = object({
    status: optional(nullOr(string)),
    build_success: optional(nullOr(boolean)),
    func_test_success: optional(nullOr(boolean)),
    intent_test_success: optional(nullOr(boolean)),
    pov_passed: optional(nullOr(number)),
    pov_total: optional(nullOr(number)),
    error_msg: optional(nullOr(string)),
    error_log: optional(nullOr(string)),
});
export const RUNTIME_RESULT = object({
    agent_duration: optional(nullOr(number)),
    agent_timeout: optional(nullOr(boolean)),
    evaluator_timeout: optional(nullOr(boolean)),
    agent_exit_code: optional(nullOr(number)),
});
export const RESULT = object({
    available: boolean,
    patch_result: optional(nullOr(PATCH_RESULT)),
    runtime_result: optional(nullOr(RUNTIME_RESULT)),
});
export type Result = TypeOf<typeof RESULT>;
export type PatchResult = TypeOf<typeof PATCH_RESULT>;

/**
 * GET api/containers/ID/agent/dialog[?since=SEQ]. The entries were written by the agent:
 * nothing in them is sure, so lib/dialog.ts reads them field by field.
 */
export const DIALOG = object({ entries: list(any), truncated: optional(boolean) });

/** One launch, GET api/launch/status and the `status` message of api/launch/ws */
export const LAUNCH = object({
    launch_id: string,
    status: literal("launching", "running", "failed"),
    containerId: optional(nullOr(string)),
    error: optional(nullOr(string)),
    command: string,
    taskId: string,
    startTime: string,
    /** A launch that waits for its turn: 1 is next. */
    queuePosition: optional(nullOr(number)),
    exitCode: optional(nullOr(number)),
    endTime: optional(nullOr(string)),
    outputError: optional(nullOr(string)),
    interrupted: optional(any),
});
export type Launch = TypeOf<typeof LAUNCH>;

/** Sent to clients that ask with `heartbeat=1`; three missed ones mean a dead connection. */
export const HEARTBEAT = object({ type: literal("heartbeat"), intervalMs: optional(number) });

/** api/launch/ws, server to page: all launches and their kept lines first, then what happens */
export const LAUNCH_MESSAGE = variants(
    object({ type: literal("status"), launch_id: string, data: LAUNCH }),
    // `offset` is where the line ends in the output: after a reconnect older lines come again.
    object({ type: literal("log"), launch_id: string, data: string, offset: optional(number) }),
    object({ type: literal("cleared"), launch_id: string }),
    HEARTBEAT,
);
export type LaunchMessage = TypeOf<typeof LAUNCH_MESSAGE>;

/** api/containers/ID/sdk-ws[?since=SEQ][&heartbeat=1], server to page */
export const FEED_MESSAGE = variants(
    object({
        type: literal("status"), status: literal("connecting", "ready", "error"),
        retryAttempt: optional(number), sdkVersion: optional(string), error: optional(string),
    }),
    object({ type: literal("project"), data: PROJECT }),
    object({ type: literal("files"), files: list(CHANGED_FILE) }),
    object({ type: literal("diff"), diff: string }),
    object({ type: literal("dialog"), entries: list(any), lastSeq: optional(number), truncated: optional(boolean) }),
    object({ type: literal("result"), result: RESULT }),
    object({ type: literal("error"), error: optional(string) }),
    HEARTBEAT,
);
export type FeedMessage = TypeOf<typeof FEED_MESSAGE>;

/** api/containers/ID/logs-ws[?heartbeat=1], server to page. GET …/logs is the same as one file. */
export const LOG_MESSAGE = variants(
    object({ type: literal("log"), data: string }),
    object({ type: literal("end"), data: object({ exitCode: nullOr(number) }) }),
    object({ type: literal("error"), data: object({ error: string }) }),
    HEARTBEAT,
);
export type LogMessage = TypeOf<typeof LOG_MESSAGE>;

/** GET api/launch/config, …/models, …/agents, …/tasks?source=remote|local, …/doctor */
export const LAUNCH_CONFIG = object({
    hasLocalBenchmarks: boolean,
    catalogConfigured: boolean,
    modes: optional(list(string)),
    plugins: optional(list(object({ name: string, enabled: boolean, hook: string, llm: boolean }))),
});
export type LaunchConfig = TypeOf<typeof LAUNCH_CONFIG>;
export const MODELS = object({ models: optional(list(string)) });
export const AGENTS = object({ agents: optional(list(string)) });
export const TASK = object({ id: string, language: optional(nullOr(string)), project: optional(nullOr(string)) });
export const TASKS = object({ tasks: optional(list(TASK)) });
export type Task = TypeOf<typeof TASK>;
export const DOCTOR = object({
    available: boolean,
    error: optional(string),
    report: optional(object({
        checks: list(object({ name: string, status: string, detail: string, fix: string })),
        models: map(object({ keys: list(string), missing: list(string) })),
    })),
});
export type Doctor = TypeOf<typeof DOCTOR>;

/** POST api/launch: one task each */
export interface LaunchRequest {
    task: string;
    model?: string;
    agent: string;
    mode: string;
    source: "remote" | "local";
    timeout?: number;
    difficulty?: number;
    egress?: string;
    plugins?: string[];
}

/**
 * api/pty/ID?mode=binary[&session=SESSION][&cols=&rows=]: binary frames are bytes of the
 * terminal, both ways; text frames are these. `session` names a terminal that outlives its
 * socket; give it back to attach again and get `replay` bytes of old output first. A server that said
 * `credit` gets, for the bytes that were shown, commands of that name.
 */
export const TERMINAL_MESSAGE = variants(
    object({ type: literal("session"), id: string, replay: optional(number), credit: optional(boolean) }),
    // While old output is replayed: the size that what follows was made for.
    object({ type: literal("resize"), cols: number, rows: number }),
    // Without mode=binary only.
    object({ type: literal("output"), data: string }),
    object({ type: literal("exit"), code: number }),
    object({ type: literal("error"), message: string }),
);
export type TerminalMessage = TypeOf<typeof TERMINAL_MESSAGE>;
export type TerminalCommand = { type: "resize"; cols: number; rows: number } | { type: "credit"; bytes: number };

/** GET api/connection: how the server sees the request that asks */
export const CONNECTION = object({
    host: string,
    origin: optional(nullOr(string)),
    scheme: string,
    basePath: string,
    peer: string,
    peerUid: optional(nullOr(number)),
    forwardedFor: optional(nullOr(string)),
    forwardedProto: optional(nullOr(string)),
    tokenRequired: boolean,
    role: optional(string),
    tokenName: optional(nullOr(string)),
    tokenExpires: optional(nullOr(string)),
    allowedOrigins: optional(list(string)),
});
export type ConnectionReport = TypeOf<typeof CONNECTION>;

/** GET api/search?q=TEXT&limit=N: dialogs that contain the text, newest run first */
export const SEARCH = object({
    results: list(object({ id: string, taskId: string, model: string, agent: string, seq: number, type: string, excerpt: string })),
    scanned: number,
    total: number,
    complete: boolean,
});
export type SearchAnswer = TypeOf<typeof SEARCH>;

/** GET api/containers/ID/opencode/health: answers in every state of the assistant */
export const ASSISTANT_HEALTH = object({ healthy: boolean, processRunning: optional(boolean), proxyModel: optional(nullOr(string)), reason: optional(string) });
export type AssistantHealth = TypeOf<typeof ASSISTANT_HEALTH>;

/**
 * …/opencode/sessions (GET, POST {title, workingDir?, apiKey?}), …/sessions/SID/messages
 * (GET, POST {message, directory?}), …/sessions/SID/permissions/PID (POST {allow, always?}),
 * …/sessions/SID/abort (POST), DELETE …/sessions/SID. Messages and events are OpenCode's own;
 * lib/conversation.ts reads them field by field.
 */
export interface AssistantSession {
    readonly id: string;
    readonly title: string;
    readonly summary: { readonly files: number; readonly additions: number; readonly deletions: number } | null;
}

/**
 * …/opencode/events-ws?sessionId=SID[&directory=DIR][&heartbeat=1], server to page: OpenCode's
 * events as they came, each in `data`, and what the server itself has to say.
 */
export const ASSISTANT_MESSAGE = variants(
    object({ type: literal("connection"), data: optional(any) }),
    object({ type: literal("error"), data: object({ error: string }) }),
    HEARTBEAT,
    object({ type: string, data: object({ properties: optional(any) }) }),
);
export type AssistantMessage = TypeOf<typeof ASSISTANT_MESSAGE>;

/** What the server's tests check its answers against: method, path, shape. */
export const DOCUMENTS = {
    "GET /api/health": HEALTH,
    "GET /api/containers": RUN_LIST,
    "GET /api/containers/ID": ONE_RUN,
    "GET /api/containers/ID/project": PROJECT,
    "GET /api/containers/ID/files": FILES,
    "GET /api/containers/ID/diff": DIFF,
    "GET /api/containers/ID/reference/patch": DIFF,
    "GET /api/containers/ID/review": REVIEW,
    "GET /api/containers/ID/result": RESULT,
    "GET /api/containers/ID/agent/dialog": DIALOG,
    "GET /api/connection": CONNECTION,
    "GET /api/search": SEARCH,
    "GET /api/launch/config": LAUNCH_CONFIG,
    "GET /api/launch/models": MODELS,
    "GET /api/launch/agents": AGENTS,
    "GET /api/launch/tasks": TASKS,
    "GET /api/launch/doctor": DOCTOR,
} as const;

/** The same for WebSockets: what the server sends there as text. */
export const MESSAGES = {
    "/api/launch/ws": LAUNCH_MESSAGE,
    "/api/containers/ID/sdk-ws": FEED_MESSAGE,
    "/api/containers/ID/logs-ws": LOG_MESSAGE,
    "/api/containers/ID/opencode/events-ws": ASSISTANT_MESSAGE,
    "/api/pty/ID": TERMINAL_MESSAGE,
} as const;
