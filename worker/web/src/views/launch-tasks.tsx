// First step of the wizard: which tasks.

import { useMemo } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { integer, plural } from "../lib/format";
import { Blank, Button, SearchField } from "../parts/basics";
import { VirtualList } from "../parts/virtual-list";
import type { Task } from "../protocol";
import type { Source } from "../stores/wizard";
import * as wizard from "../stores/wizard";

function Sources() {
    const { remote, local } = wizard.tasks.value;
    const catalog = wizard.config.value?.catalogConfigured === true;
    const count = (list: readonly Task[] | null) => (list ? integer(list.length) : "…");
    const choice = (id: Source, label: string, off: string | null, n: string) => (
        <button type="button" class="segment" aria-pressed={wizard.source.value === id} disabled={off !== null} title={off ?? undefined}
            onClick={() => wizard.setSource(id)}>{label} <span class="tab-badge">{off ? "off" : n}</span></button>
    );
    return (
        <div class="segments" role="group" aria-label="Where tasks come from">
            {choice("remote", "Catalog", catalog ? null : "No task catalog is configured (SSEBENCH_CATALOG)", count(remote))}
            {choice("local", "Local", null, count(local))}
        </div>
    );
}

function emptyText(all: readonly Task[]): preact.VNode {
    const source = wizard.source.value;
    if (source === "remote" && wizard.taskError.value) return <Blank tone="bad" title="The catalog cannot be read">{wizard.taskError.value}</Blank>;
    if (all.length > 0) return <Blank title="No tasks match your search" />;
    if (source === "local") return <Blank title="No local tasks found" />;
    return wizard.config.value?.catalogConfigured ? <Blank title="No tasks available" />
        : <Blank title="Task catalog not configured">Set <code>SSEBENCH_CATALOG</code> for the server.</Blank>;
}

export function TaskStep() {
    const search = useSignal("");
    const all = wizard.tasks.value[wizard.source.value];
    const found = useMemo(() => {
        const q = search.value.toLowerCase();
        return (all ?? []).filter((task) => [task.id, task.language ?? "", task.project ?? ""].some((text) => text.toLowerCase().includes(q)));
    }, [all, search.value]);
    const chosen = wizard.chosenTasks.value;
    const allChosen = found.length > 0 && found.every((task) => chosen.has(task.id));
    const toggle = (ids: readonly string[], on: boolean) => {
        const next = new Set(chosen);
        for (const id of ids) if (on) next.add(id); else next.delete(id);
        wizard.chosenTasks.value = next;
    };
    return (
        <div class="task-step">
            <div class="pane-tools">
                <Sources />
                <SearchField value={search.value} onValue={(v) => (search.value = v)} label="Search tasks" placeholder="Search ID, language, project" />
                <span class="grow" />
                <span class="dim" role="status">{plural(chosen.size, "task")} chosen</span>
                <Button kind="quiet" label={allChosen ? `Deselect all ${integer(found.length)}` : `Select all ${integer(found.length)}`} disabled={found.length === 0}
                    onClick={() => toggle(found.map((task) => task.id), !allChosen)} />
            </div>
            {!all ? <Blank busy title="Loading tasks" />
                : found.length === 0 ? emptyText(all)
                : <VirtualList className="task-list" count={found.length} estimate={36} epoch={search.value} role="list" rowRole="listitem" label="Tasks"
                    keyOf={(i) => found[i]!.id}
                    render={(i) => {
                        const task = found[i]!;
                        return (
                            <label class="task-row">
                                <input type="checkbox" checked={chosen.has(task.id)} onChange={(event) => toggle([task.id], event.currentTarget.checked)} />
                                <span class="strong">{task.id}</span><span class="dim">{task.project}</span><span class="dim">{task.language}</span>
                            </label>
                        );
                    }} />}
        </div>
    );
}
