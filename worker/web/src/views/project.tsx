// What a run's task is about.

import { address } from "../lib/route";
import { LongText } from "../parts/long-text";
import { Modal } from "../parts/modal";
import type { Project, Run } from "../protocol";

export function ProjectModal({ run, project, onClose }: { run: Run; project: Project | null; onClose: () => void }) {
    const task = project?.task_description;
    const facts: [string, string | null | undefined][] = [
        ["Task", run.taskId], ["Project", project?.project], ["Language", project?.language], ["Source", project?.source],
        ["Run ID", run.id], ["Agent", run.agent], ["Model", run.model], ["Mode", run.mode],
        ["Difficulty", run.difficulty === null || run.difficulty === undefined ? null : `${run.difficulty}`], ["Image", run.image], ["Container", run.name === run.id ? null : run.name],
    ];
    return (
        <Modal title="Run details" wide onClose={onClose} foot={<a class="button" href={address(["runs"], { task: run.taskId })} onClick={onClose}>All runs of this task</a>}>
            <dl class="facts grid">{facts.filter(([, value]) => value).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
            <h3>Description</h3>
            <LongText text={task?.bug_description || task?.issue || "No description available"} name="description.txt" className="wrap prose" first={4000} />
            {task?.crash_report?.map((report, i) => <div key={i}><h3>Crash report {i + 1}</h3><LongText text={report} name={`crash-${i + 1}.txt`} /></div>)}
            {!!project?.poc?.length && <><h3>Proofs of concept</h3><ul>{project.poc.map((file) => <li key={file}><code>{file}</code></li>)}</ul></>}
        </Modal>
    );
}
