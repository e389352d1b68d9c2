// Task by model: how often runs passed, how many there were, what they cost.

import { useEffect, useMemo } from "preact/hooks";
import { address, route, setQuery } from "../lib/route";
import type { Cell } from "../lib/stats";
import { buildMatrix, cellRuns, wilson } from "../lib/stats";
import { dollars, duration, plural } from "../lib/format";
import { Blank, Button, Notice, saveText } from "../parts/basics";
import { allRuns, allRunsError, loadAllRuns } from "../stores/all-runs";

const percent = (x: number) => `${Math.round(x * 100)}%`;

function cellTitle(cell: Cell): string {
    const { low, high } = wilson(cell.passed, cell.graded);
    const parts = [`${cell.passed} of ${cell.graded} graded runs passed`];
    if (cell.graded) parts.push(`95 % interval ${percent(low)} to ${percent(high)}`);
    if (cell.errors) parts.push(`${plural(cell.errors, "run")} ended in an error and does not count`);
    if (cell.open) parts.push(`${plural(cell.open, "run")} without a grade`);
    if (cell.spend) parts.push(`spend ${dollars(cell.spend)}`);
    return parts.join("; ");
}

/** Five steps from red to green; words and numbers say the same. */
function shade(cell: Cell): string {
    if (cell.graded === 0) return "none";
    return `rate${Math.min(4, Math.floor((cell.passed / cell.graded) * 5))}`;
}

function CellLink({ cell, task, model, agent }: { cell: Cell | undefined; task: string; model: string; agent: string }) {
    if (!cell) return <td class="cell"><span class="dim" aria-label="no runs">·</span></td>;
    const href = cell.runId ? address(["runs", cell.runId]) : address(["runs"], { task, model, agent });
    return (
        <td class={`cell ${shade(cell)}`}>
            <a href={href} title={cellTitle(cell)}>
                <strong>{cell.graded ? `${cell.passed}/${cell.graded}` : cell.errors ? "err" : "–"}</strong>
                <span class="cell-more">{cell.spend ? dollars(cell.spend) : cell.errors && cell.graded ? `${cell.errors} err` : ""}</span>
            </a>
        </td>
    );
}

/** A rate as a bar with its interval. */
function Rate({ cell }: { cell: Cell | undefined }) {
    if (!cell || cell.graded === 0) return <span class="dim">–</span>;
    const rate = cell.passed / cell.graded, { low, high } = wilson(cell.passed, cell.graded);
    return (
        <span class="rate" title={cellTitle(cell)}>
            <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
                <rect class="track" width="100" height="12" /><rect class="bar" width={rate * 100} height="12" />
                <path class="interval" d={`M${low * 100} 6H${high * 100}M${low * 100} 3V9M${high * 100} 3V9`} />
            </svg>
            <span class="rate-text">{percent(rate)} <span class="dim">{percent(low)}–{percent(high)}</span></span>
        </span>
    );
}

function csv(matrix: ReturnType<typeof buildMatrix>): string {
    const quote = (text: string) => `"${text.replace(/"/g, '""').replace(/^([=+\-@])/, "'$1")}"`;
    const lines = ["task,model,graded,passed,errors,without_grade,spend_usd,seconds"];
    for (const task of matrix.tasks)
        for (const model of matrix.models) {
            const c = matrix.cell(task, model);
            if (c) lines.push([quote(task), quote(model), c.graded, c.passed, c.errors, c.open, c.spend.toFixed(4), c.seconds].join(","));
        }
    return `${lines.join("\n")}\n`;
}

export function MatrixView() {
    useEffect(() => void loadAllRuns(), []);
    const runs = allRuns.value;
    const agent = route.value.query.get("agent") ?? "";
    const agents = useMemo(() => [...new Set((runs ?? []).filter((r) => !r.referenceRun).map((r) => r.agent))].sort(), [runs]);
    const matrix = useMemo(() => buildMatrix(runs ?? [], agent), [runs, agent]);
    if (!runs && allRunsError.value) return <Blank top tone="bad" title="The runs cannot be listed">{allRunsError.value}</Blank>;
    if (!runs) return <Blank top busy title="Counting runs" />;
    return (
        <div class="matrix">
            <header class="view-head">
                <h1>Matrix</h1><span class="dim">{plural(cellRuns(matrix.all), "run")} · {dollars(matrix.all.spend)}</span>
                <span class="grow" />
                <select aria-label="Agent" value={agent} class={agent ? "chosen" : ""} onChange={(event) => setQuery({ agent: event.currentTarget.value })}>
                    <option value="">Agent: all</option>{agents.map((name) => <option key={name} value={name}>{name}</option>)}
                </select>
                <Button kind="quiet" bare icon="download" label="Save as CSV" onClick={() => saveText("matrix.csv", csv(matrix), "text/csv")} />
                <Button kind="quiet" bare icon="refresh" label="Refresh" onClick={() => void loadAllRuns()} />
            </header>
            {allRunsError.value && <Notice tone="bad">Not fresh: {allRunsError.value}</Notice>}
            {matrix.tasks.length === 0 ? <Blank title="No runs to compare" /> : <Table matrix={matrix} agent={agent} />}
        </div>
    );
}

function Table({ matrix, agent }: { matrix: ReturnType<typeof buildMatrix>; agent: string }) {
    const hasReference = matrix.reference.size > 0;
    return (
        <div class="matrix-scroll" tabIndex={0} role="region" aria-label="Matrix of tasks and models">
            <table class="matrix-table">
                <thead>
                    <tr>
                        <th scope="col" class="corner">Task</th>
                        {matrix.models.map((model) => <th scope="col" key={model}><a href={address(["runs"], { model, agent })}>{model}</a></th>)}
                        <th scope="col" class="sum">All models</th>
                        {hasReference && <th scope="col" class="reference-column">Reference</th>}
                    </tr>
                </thead>
                <tbody>
                    {matrix.tasks.map((task) => (
                        <tr key={task}>
                            <th scope="row"><a href={address(["runs"], { task })}>{task}</a></th>
                            {matrix.models.map((model) => <CellLink key={model} cell={matrix.cell(task, model)} task={task} model={model} agent={agent} />)}
                            <td class="sum"><Rate cell={matrix.ofTask.get(task)} /></td>
                            {hasReference && <td class="cell reference-column"><ReferenceCell cell={matrix.reference.get(task)} task={task} /></td>}
                        </tr>
                    ))}
                </tbody>
                <tfoot>
                    <tr><th scope="row">All tasks</th>{matrix.models.map((model) => <td key={model}><Rate cell={matrix.ofModel.get(model)} /></td>)}<td class="sum"><Rate cell={matrix.all} /></td>{hasReference && <td />}</tr>
                    <tr><th scope="row">Spend</th>{matrix.models.map((model) => <td key={model} class="dim">{dollars(matrix.ofModel.get(model)?.spend)}</td>)}<td class="sum dim">{dollars(matrix.all.spend)}</td>{hasReference && <td />}</tr>
                    <tr><th scope="row">Agent time</th>{matrix.models.map((model) => <td key={model} class="dim">{duration(matrix.ofModel.get(model)?.seconds)}</td>)}<td class="sum dim">{duration(matrix.all.seconds)}</td>{hasReference && <td />}</tr>
                </tfoot>
            </table>
            <p class="dim matrix-note">Passed / graded. Runs that ended in an error or have no grade do not count for the rate. Bars: pass rate with Wilson's 95 % interval.</p>
        </div>
    );
}

function ReferenceCell({ cell, task }: { cell: Cell | undefined; task: string }) {
    if (!cell) return <span class="dim" aria-label="no reference run">·</span>;
    return <a href={cell.runId ? address(["runs", cell.runId]) : address(["runs"], { task, agent: "reference" })} title={cellTitle(cell)}>{cell.graded ? `${cell.passed}/${cell.graded}` : "–"}</a>;
}
