// The run list: a table that stays quick at any length, with search, filters and sorting.

import { useEffect, useRef, useState } from "preact/hooks";
import { bindKey } from "../lib/keys";
import { address, go, setQuery } from "../lib/route";
import { ago, dateTime, dollars, duration, integer } from "../lib/format";
import { Blank, Button, Notice, SearchField } from "../parts/basics";
import { GradeMark, StatusMark } from "../parts/run-marks";
import type { ListControl } from "../parts/virtual-list";
import { VirtualList } from "../parts/virtual-list";
import type { Run } from "../protocol";
import type { FilterName, SortName } from "../stores/runs";
import { listError, listQuery, loading, lookAt, loadRuns, resultsCut, rows, runnerError, seenValues, setFilter, total, watchRuns } from "../stores/runs";

interface Column { readonly sort: SortName; readonly label: string; readonly className: string; readonly cell: (run: Run) => preact.ComponentChildren }

const COLUMNS: readonly Column[] = [
    { sort: "status", label: "State", className: "c-status", cell: (run) => <StatusMark run={run} /> },
    { sort: "task", label: "Task", className: "c-task", cell: (run) => <a class="row-link strong" href={address(["runs", run.id])}>{run.taskId}</a> },
    { sort: "model", label: "Model", className: "c-model", cell: (run) => run.referenceRun ? <span class="dim">reference</span> : run.model },
    { sort: "agent", label: "Agent", className: "c-agent", cell: (run) => run.agent },
    { sort: "grade", label: "Grade", className: "c-grade", cell: (run) => <GradeMark grade={run.grade} reference={run.referenceRun} /> },
    { sort: "spend", label: "Spend", className: "c-spend number", cell: (run) => dollars(run.spend) },
    { sort: "duration", label: "Time", className: "c-duration number", cell: (run) => duration(run.durationSeconds) },
    { sort: "created", label: "Started", className: "c-started", cell: (run) => <Started run={run} /> },
];

function Started({ run }: { run: Run }) {
    const date = run.startedAt ?? run.createdAt;
    return <span title={dateTime(date)}>{ago(date)}</span>;
}

const TABS: readonly { label: string; status: string; recent?: true }[] = [
    { label: "All", status: "" },
    { label: "Running", status: "running" },
    { label: "Exited", status: "exited" },
    { label: "Recent", status: "", recent: true },
];

function StateTabs() {
    const { filters, recent } = listQuery.value;
    return (
        <div class="segments" role="group" aria-label="Which runs">
            {TABS.map((tab) => {
                const on = tab.recent ? recent : !recent && filters.status === tab.status;
                return <button type="button" key={tab.label} class="segment" aria-pressed={on}
                    onClick={() => setQuery({ status: tab.status, recent: tab.recent ? 1 : undefined })}>{tab.label}</button>;
            })}
        </div>
    );
}

function Choice({ name, label, values }: { name: FilterName; label: string; values: readonly string[] }) {
    const value = listQuery.value.filters[name];
    const all = value && !values.includes(value) ? [value, ...values] : values;
    return (
        <select class={value ? "chosen" : ""} aria-label={label} value={value} onChange={(event) => setFilter(name, event.currentTarget.value)}>
            <option value="">{label}: any</option>
            {all.map((option) => <option key={option} value={option}>{option}</option>)}
        </select>
    );
}

function Filters() {
    const { filters } = listQuery.value;
    const values = seenValues.value;
    const filtered = Object.values(filters).some(Boolean);
    const [more, setMore] = useState(false);
    return (
        <div class="filters">
            <SearchField value={filters.q} onValue={(q) => setFilter("q", q)} label="Search runs" placeholder="Task, model, agent, ID" />
            <StateTabs />
            <Button class="narrow-only" label="Filters" pressed={more} onClick={() => setMore(!more)} />
            <div class={`choices ${more ? "shown" : ""}`}>
                <Choice name="task" label="Task" values={values.task} />
                <Choice name="model" label="Model" values={values.model} />
                <Choice name="agent" label="Agent" values={values.agent} />
                <Choice name="grade" label="Grade" values={["passed", "failed", "error", "none"]} />
            </div>
            {filtered && <Button kind="quiet" label="Clear" icon="close" onClick={() => go(address(["runs"]), { replace: true })} />}
        </div>
    );
}

function Head({ gutter }: { gutter: number }) {
    const { sort, order } = listQuery.value;
    return (
        <div class="run-row head" role="row" style={{ borderRight: `${gutter}px solid transparent` }}>
            {COLUMNS.map((column) => {
                const on = column.sort === sort;
                const next = on && order === "desc" ? "asc" : "desc";
                return (
                    <div key={column.sort} class={column.className} role="columnheader" aria-sort={on ? (order === "asc" ? "ascending" : "descending") : "none"}>
                        <button type="button" class="sort" onClick={() => setQuery({ sort: column.sort === "created" ? undefined : column.sort, order: next === "desc" ? undefined : next })}>
                            {column.label}<span class="sort-mark" aria-hidden="true">{on ? (order === "asc" ? "↑" : "↓") : ""}</span>
                        </button>
                    </div>
                );
            })}
        </div>
    );
}

function Row({ index }: { index: number }) {
    const run = rows.value[index];
    if (!run) return <div class="run-row waiting"><div class="c-task" role="cell"><span class="ghost" /></div></div>;
    return (
        <div class={`run-row ${run.referenceRun ? "reference" : ""}`}>
            {COLUMNS.map((column) => <div key={column.sort} class={column.className} role="cell">{column.cell(run)}</div>)}
        </div>
    );
}

function Table({ count }: { count: number }) {
    const control = useRef<ListControl | null>(null);
    const root = () => control.current?.element() ?? null;
    const [gutter, setGutter] = useState(0);
    // The head ends where the rows end, with a scroll bar or without.
    useEffect(() => {
        const list = root();
        if (!list) return;
        const observer = new ResizeObserver(() => setGutter(list.offsetWidth - list.clientWidth));
        observer.observe(list);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        const step = (by: number) => {
            const links = [...(root()?.querySelectorAll<HTMLElement>("a.row-link") ?? [])];
            const at = links.indexOf(document.activeElement as HTMLElement);
            (at < 0 ? links[0] : links[at + by])?.focus();
        };
        const unbind = [
            bindKey("j", "Next run", "Run list", () => step(1)),
            bindKey("k", "Previous run", "Run list", () => step(-1)),
            bindKey("g g", "First run", "Run list", () => control.current?.show(0)),
            bindKey("G", "Last run", "Run list", () => control.current?.toEnd()),
        ];
        return () => unbind.forEach((undo) => undo());
    }, []);
    return (
        <div class="run-table" role="table" aria-label="Runs" aria-rowcount={count + 1}>
            <Head gutter={gutter} />
            <VirtualList className="run-rows" count={count} estimate={34} epoch={JSON.stringify(listQuery.value)} role="rowgroup" rowRole="row"
                label="Runs" onRange={lookAt} control={(c) => (control.current = c)}
                keyOf={(i) => rows.value[i]?.id ?? `gap${i}`} render={(i) => <Row index={i} />} />
        </div>
    );
}

function NoRows() {
    if (total.value === null && listError.value) return <Blank tone="bad" title="The runs cannot be listed">{listError.value}</Blank>;
    if (total.value === null) return <Blank busy title="Loading runs" />;
    const query = listQuery.value;
    const filtered = query.recent || Object.values(query.filters).some(Boolean);
    return (
        <Blank title={filtered ? "No run fits" : "No runs yet"}>
            {filtered ? <Button label="Show all runs" onClick={() => go(address(["runs"]))} /> : "A run appears here when it is launched."}
        </Blank>
    );
}

export function RunsView() {
    useEffect(watchRuns, []);
    return (
        <div class="runs">
            <header class="view-head">
                <h1>Runs</h1>
                <span class="dim" role="status">{total.value === null ? "" : integer(total.value)}</span>
                <span class="grow" />
                <Button kind="quiet" bare icon="refresh" label="Refresh" disabled={loading.value} onClick={() => void loadRuns()} />
            </header>
            <Filters />
            {runnerError.value && <Notice tone="warn">Live runs are missing or old: {runnerError.value}</Notice>}
            {resultsCut.value && <Notice tone="warn">Finished runs may be missing: {resultsCut.value}</Notice>}
            {listError.value && total.value !== null && <Notice tone="bad">The list is not fresh: {listError.value}</Notice>}
            {total.value ? <Table count={total.value} /> : <div class="run-table"><NoRows /></div>}
        </div>
    );
}
