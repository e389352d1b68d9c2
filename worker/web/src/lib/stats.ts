// Numbers of the matrix: pass rates with their uncertainty, grouped from runs.

import type { Run } from "../protocol";

export interface Interval { readonly low: number; readonly high: number }

const Z95 = 1.959964;

/** Wilson's 95 % interval of a rate of `passed` out of `n`. */
export function wilson(passed: number, n: number): Interval {
    if (n === 0) return { low: 0, high: 1 };
    const p = passed / n, zz = Z95 * Z95;
    const middle = (p + zz / (2 * n)) / (1 + zz / n);
    const half = (Z95 / (1 + zz / n)) * Math.sqrt((p * (1 - p)) / n + zz / (4 * n * n));
    return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

export interface Cell {
    /** Runs with a grade of passed or failed: the ones that count for the rate. */
    graded: number;
    passed: number;
    /** Runs that did not come to a grade. */
    errors: number;
    /** Runs that are still going or have no grade. */
    open: number;
    spend: number;
    seconds: number;
    /** The only run, when there is one. */
    runId: string | null;
}

export const emptyCell = (): Cell => ({ graded: 0, passed: 0, errors: 0, open: 0, spend: 0, seconds: 0, runId: null });
export const cellRuns = (cell: Cell) => cell.graded + cell.errors + cell.open;

export function countRun(cell: Cell, run: Run): void {
    cell.runId = cellRuns(cell) === 0 ? run.id : null;
    if (run.grade === "passed" || run.grade === "failed") {
        cell.graded++;
        if (run.grade === "passed") cell.passed++;
    } else if (run.grade === "error") cell.errors++;
    else cell.open++;
    cell.spend += run.spend ?? 0;
    cell.seconds += run.durationSeconds ?? 0;
}

export interface Matrix {
    readonly tasks: readonly string[];
    readonly models: readonly string[];
    readonly cell: (task: string, model: string) => Cell | undefined;
    readonly ofTask: ReadonlyMap<string, Cell>;
    readonly ofModel: ReadonlyMap<string, Cell>;
    /** Reference runs by task: they rate the task, not a model. */
    readonly reference: ReadonlyMap<string, Cell>;
    readonly all: Cell;
}

function at(cells: Map<string, Cell>, key: string): Cell {
    let cell = cells.get(key);
    if (!cell) cells.set(key, (cell = emptyCell()));
    return cell;
}

export function buildMatrix(runs: readonly Run[], agent: string): Matrix {
    const cells = new Map<string, Cell>(), ofTask = new Map<string, Cell>(), ofModel = new Map<string, Cell>();
    const reference = new Map<string, Cell>(), all = emptyCell();
    const tasks = new Set<string>();
    for (const run of runs) {
        if (run.referenceRun) {
            tasks.add(run.taskId);
            countRun(at(reference, run.taskId), run);
            continue;
        }
        if (agent && run.agent !== agent) continue;
        tasks.add(run.taskId);
        for (const cell of [at(cells, `${run.taskId}\n${run.model}`), at(ofTask, run.taskId), at(ofModel, run.model), all]) countRun(cell, run);
    }
    return {
        tasks: [...tasks].sort(), models: [...ofModel.keys()].sort(), cell: (task, model) => cells.get(`${task}\n${model}`),
        ofTask, ofModel, reference, all,
    };
}
