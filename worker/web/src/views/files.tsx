// The files that a run changed; a row leads to the file's part of the diff.

import { lookup } from "../lib/lookup";
import { address } from "../lib/route";
import { plural } from "../lib/format";
import { Blank } from "../parts/basics";
import type { ChangedFile } from "../protocol";

const LETTERS: Record<string, string> = { modified: "M", added: "A", deleted: "D", renamed: "R" };

export function FilesPane({ files, runId }: { files: readonly ChangedFile[] | null; runId: string }) {
    if (!files) return <Blank busy title="Loading files" />;
    if (files.length === 0) return <Blank title="No changes yet" />;
    const additions = files.reduce((n, file) => n + file.additions, 0), deletions = files.reduce((n, file) => n + file.deletions, 0);
    return (
        <div class="files scroll" tabIndex={0} role="region" aria-label="Changed files">
            <p class="files-total dim">{plural(files.length, "file")} <span class="added">+{additions}</span> <span class="removed">−{deletions}</span></p>
            <ul>
                {files.map((file) => {
                    const cut = file.path.lastIndexOf("/") + 1;
                    return (
                        <li key={file.path}>
                            <a class="file-row" href={address(["runs", runId, "changes"], { f: file.path })} title={file.path}>
                                <span class={`letter ${file.status}`} aria-label={file.status}>{lookup(LETTERS, file.status) ?? "?"}</span>
                                <span class="file-path"><span class="dim">{file.path.slice(0, cut)}</span>{file.path.slice(cut)}</span>
                                <span class="added">+{file.additions}</span><span class="removed">−{file.deletions}</span>
                            </a>
                        </li>
                    );
                })}
            </ul>
        </div>
    );
}
