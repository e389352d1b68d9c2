// What the launch wizard holds: the choices there are, and the ones that were made.

import { computed, signal } from "@preact/signals";
import { ApiError, errorText, getDocument, request } from "../lib/api";
import type { Doctor, LaunchConfig, LaunchRequest, Task } from "../protocol";
import { AGENTS, DOCTOR, LAUNCH_CONFIG, MODELS, TASKS } from "../protocol";

export type Source = "remote" | "local";
export const STEPS = ["Task", "Agent", "Model", "Mode", "Options", "Review"] as const;

export const config = signal<LaunchConfig | null>(null);
export const models = signal<readonly string[]>([]);
export const agents = signal<readonly string[]>([]);
export const doctor = signal<Doctor | null>(null);
export const loadError = signal<string | null>(null);
export const tasks = signal<Readonly<Record<Source, readonly Task[] | null>>>({ remote: null, local: null });
export const taskError = signal<string | null>(null);

export const step = signal(0);
export const source = signal<Source>("remote");
export const chosenTasks = signal<ReadonlySet<string>>(new Set());
export const agent = signal("");
export const model = signal("");
export const mode = signal<"sandbox" | "sidecar">("sandbox");
export const difficulty = signal(2);
/** Minutes, as typed. */
export const timeout = signal("60");
export const egress = signal<"restricted" | "open">("restricted");
export const plugins = signal<ReadonlySet<string>>(new Set());

const DEFAULT_DIFFICULTY = 2;
const DEFAULT_MINUTES = 60;
const MAX_MINUTES = 10_080;

export const isReference = computed(() => agent.value === "reference");
export const minutes = computed(() => (/^\d{1,5}$/.test(timeout.value.trim()) ? Number(timeout.value) : NaN));
const enabledPlugins = computed(() => (config.value?.plugins ?? []).filter((p) => p.enabled).map((p) => p.name));
const samePlugins = computed(() => plugins.value.size === enabledPlugins.value.length && enabledPlugins.value.every((name) => plugins.value.has(name)));

/** Why the plugins cannot be as chosen: an empty set cannot be told to the server. */
export const pluginProblem = computed(() =>
    mode.value === "sandbox" && plugins.value.size === 0 && enabledPlugins.value.length > 0
        ? `The server's configuration turns ${enabledPlugins.value.join(", ")} on; a launch cannot turn all plugins off.` : null);

export const missingKeys = (name: string): readonly string[] => doctor.value?.report?.models[name]?.missing ?? [];

export const valid = computed<readonly boolean[]>(() => {
    const ok = [
        chosenTasks.value.size > 0,
        agent.value !== "",
        isReference.value || model.value !== "",
        true,
        minutes.value >= 1 && minutes.value <= MAX_MINUTES && pluginProblem.value === null,
    ];
    return [...ok, ok.every(Boolean)];
});

/** Load everything to choose from; the doctor may take its time. */
export async function loadChoices(): Promise<void> {
    loadError.value = null;
    void getDocument(DOCTOR, "launch/doctor").then((report) => (doctor.value = report), () => {});
    try {
        const [c, m, a] = await Promise.all([getDocument(LAUNCH_CONFIG, "launch/config"), getDocument(MODELS, "launch/models"), getDocument(AGENTS, "launch/agents")]);
        config.value = c;
        models.value = m.models ?? [];
        agents.value = a.agents ?? [];
        if (!agents.value.includes(agent.value)) agent.value = agents.value[0] ?? "";
        if (plugins.value.size === 0) plugins.value = new Set(enabledPlugins.value);
        if (chosenTasks.value.size === 0) source.value = c.catalogConfigured ? "remote" : "local";
    } catch (error) {
        loadError.value = errorText(error);
        return;
    }
    void loadTasks("local");
    if (config.value.catalogConfigured) void loadTasks("remote");
}

async function loadTasks(from: Source): Promise<void> {
    try {
        const answer = await getDocument(TASKS, `launch/tasks?source=${from}`);
        tasks.value = { ...tasks.value, [from]: answer.tasks ?? [] };
    } catch (error) {
        tasks.value = { ...tasks.value, [from]: [] };
        if (from === "remote") taskError.value = errorText(error);
    }
}

export function setSource(next: Source): void {
    if (next === source.value) return;
    source.value = next;
    chosenTasks.value = new Set();
}

/** Options that differ from the defaults, in words. */
export const changes = computed(() => {
    const list: string[] = [];
    if (difficulty.value !== DEFAULT_DIFFICULTY) list.push(`difficulty ${difficulty.value}`);
    if (minutes.value !== DEFAULT_MINUTES) list.push(`timeout ${minutes.value} min`);
    if (egress.value !== "restricted") list.push("open egress");
    if (mode.value === "sandbox" && !samePlugins.value) list.push(`plugins ${[...plugins.value].join(", ")}`);
    return list;
});

export function requestFor(task: string): LaunchRequest {
    const body: LaunchRequest = { task, agent: agent.value, mode: mode.value, source: source.value };
    if (!isReference.value) body.model = model.value;
    if (minutes.value !== DEFAULT_MINUTES) body.timeout = minutes.value * 60;
    if (difficulty.value !== DEFAULT_DIFFICULTY) body.difficulty = difficulty.value;
    if (egress.value !== "restricted") body.egress = egress.value;
    if (mode.value === "sandbox" && plugins.value.size > 0 && !samePlugins.value) body.plugins = [...plugins.value];
    return body;
}

/** The command that a launch stands for, to read and to copy. */
export function commandFor(task: string): string {
    const r = requestFor(task);
    const words = ["ssebench", "run", "--task", task, "--agent", r.agent, ...(r.model ? ["--model", r.model] : []), "--mode", r.mode];
    if (r.timeout) words.push("--timeout", `${r.timeout}`);
    if (r.difficulty !== undefined) words.push("--difficulty", `${r.difficulty}`);
    if (r.egress) words.push("--egress", r.egress);
    for (const name of r.plugins ?? []) words.push("--plugin", name);
    return words.join(" ");
}

export interface Outcome { readonly task: string; readonly id: string | null; readonly error: string | null }

/** By request: the key of a launch whose answer did not come. Sent again with it, it starts no second run. */
const unanswered = new Map<string, string>();

async function launchOne(task: string): Promise<Outcome> {
    const body = requestFor(task), sent = JSON.stringify(body);
    const key = unanswered.get(sent) ?? `${Date.now()}-${Math.random().toString(36).slice(2)}-${task}`;
    unanswered.set(sent, key);
    try {
        const answer: unknown = await (await request("launch", { method: "POST", body, headers: { "Idempotency-Key": key } })).json();
        unanswered.delete(sent);
        const id = (answer as { launch_id?: unknown }).launch_id;
        return { task, id: typeof id === "string" ? id : null, error: null };
    } catch (error) {
        // A gateway's 502 or 504 does not tell what became of the launch.
        if (error instanceof ApiError && error.status < 500) unanswered.delete(sent);
        return { task, id: null, error: errorText(error) };
    }
}

/** One request a task; every outcome is told, the refused ones too. */
export async function launchAll(): Promise<Outcome[]> {
    return Promise.all([...chosenTasks.value].map(launchOne));
}

export function startOver(): void {
    step.value = 0;
    chosenTasks.value = new Set();
}
