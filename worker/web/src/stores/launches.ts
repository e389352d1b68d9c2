// Launches as the server tells them: state, output, and what becomes of them.

import { signal } from "@preact/signals";
import { request } from "../lib/api";
import { Channel } from "../lib/channel";
import { address, go, route } from "../lib/route";
import type { Launch, LaunchMessage } from "../protocol";
import { LAUNCH_MESSAGE } from "../protocol";
import { Lines } from "./logs";
import { note } from "./notifications";
import { openRun } from "./opened";
import { findRun, loadRuns } from "./runs";

export interface LaunchEntry {
    readonly id: string;
    readonly lines: Lines;
    readonly state: Launch | null;
    /** Where the last line that is here ends in the launch's output. */
    offset: number;
    /** Lines that a new connection repeats, for a server that tells no offsets. */
    repeated: number;
}

/** Launches by ID, in the order they came. */
export const launches = signal<ReadonlyMap<string, LaunchEntry>>(new Map());
/** Taken off the screen by hand: what still comes of them is not shown again. */
const dismissed = new Set<string>();
let channel: Channel<typeof LAUNCH_MESSAGE> | null = null;

function entryOf(id: string): LaunchEntry {
    const old = launches.peek().get(id);
    if (old) return old;
    const entry: LaunchEntry = { id, lines: new Lines(), state: null, offset: -1, repeated: 0 };
    launches.value = new Map(launches.peek()).set(id, entry);
    return entry;
}

function drop(id: string): void {
    if (!launches.peek().has(id)) return;
    const next = new Map(launches.peek());
    next.delete(id);
    launches.value = next;
}

/** A run exists now: it takes the place of its launch in the sidebar. */
async function becomeRun(launch: Launch): Promise<void> {
    const runId = launch.containerId;
    if (!runId) return;
    const watched = route.peek().path[0] === "launches" && route.peek().path[1] === launch.launch_id;
    await findRun(runId).catch(() => null);
    void loadRuns();
    openRun(runId);
    if (watched) go(address(["runs", runId, "logs"]), { replace: true });
    await clear(launch.launch_id);
}

function receiveStatus(launch: Launch): void {
    const entry = entryOf(launch.launch_id);
    const before = entry.state?.status;
    launches.value = new Map(launches.peek()).set(launch.launch_id, { ...entry, state: launch });
    if (launch.status === "running" && before !== "running") void becomeRun(launch);
    if (launch.status === "failed" && before === "launching" && launch.error !== "Cancelled by user")
        note(`Launch failed: ${launch.taskId}`, launch.error ?? "", address(["launches", launch.launch_id]));
}

/** The server repeats kept lines on a new connection: what is here already is not shown twice. */
function receiveLine(entry: LaunchEntry, line: string, offset: number | null): void {
    if (offset !== null) {
        if (offset <= entry.offset) return;
        entry.offset = offset;
    } else if (entry.repeated > 0) {
        entry.repeated--;
        return;
    }
    entry.lines.push(line);
}

function receive(message: LaunchMessage): void {
    if (message.type === "heartbeat" || dismissed.has(message.launch_id)) return;
    if (message.type === "status") receiveStatus(message.data);
    else if (message.type === "cleared") drop(message.launch_id);
    else receiveLine(entryOf(message.launch_id), message.data, message.offset ?? null);
}

export function startLaunches(): void {
    channel ??= new Channel("launches", {
        shape: LAUNCH_MESSAGE,
        path: () => "launch/ws?heartbeat=1",
        onMessage: receive,
        onOpen: () => launches.peek().forEach((entry) => (entry.repeated = entry.lines.total)),
    });
}

export async function cancel(id: string): Promise<void> {
    await request("launch/cancel", { method: "POST", body: { launch_id: id } });
}

/** Forget a launch here and on the server; a run that it started goes on. */
export async function clear(id: string): Promise<void> {
    dismissed.add(id);
    drop(id);
    await request("launch/clear", { method: "POST", body: { launch_id: id } }).catch(() => {});
}
