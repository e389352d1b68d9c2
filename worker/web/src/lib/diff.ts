// Unified diffs as git writes them, read into files, hunks and lines.

export type LineKind = "context" | "add" | "delete" | "note";

export interface DiffLine {
    readonly kind: LineKind;
    readonly text: string;
    readonly oldNumber: number | null;
    readonly newNumber: number | null;
}

export interface Hunk {
    readonly header: string;
    readonly lines: DiffLine[];
}

export interface DiffFile {
    path: string;
    oldPath: string | null;
    status: "modified" | "added" | "deleted" | "renamed";
    /** Lines such as "Binary files differ" or mode changes. */
    readonly notes: string[];
    readonly hunks: Hunk[];
    additions: number;
    deletions: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;
const ESCAPES: Record<string, number> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, "\\": 92 };

/** A name in git's quoted form ("a/caf\303\251") as text; other names as they are. */
export function unquote(name: string): string {
    if (!name.startsWith('"') || !name.endsWith('"') || name.length < 2) return name;
    const bytes: number[] = [];
    const body = name.slice(1, -1);
    for (const piece of body.matchAll(/\\([0-7]{3})|\\(.)|([^\\]+)/gsu)) {
        if (piece[1]) bytes.push(parseInt(piece[1], 8) & 255);
        else if (piece[2]) bytes.push(ESCAPES[piece[2]] ?? piece[2].charCodeAt(0));
        else for (const byte of new TextEncoder().encode(piece[3])) bytes.push(byte);
    }
    return new TextDecoder().decode(new Uint8Array(bytes));
}

/** A name as it stands behind `---`, where a tab and a time may follow. */
const withoutPrefix = (name: string) => unquote(name.split("\t", 1)[0]!).replace(/^[ab]\//, "");

/** Where the quoted name ends with which `text` begins. */
function endOfQuoted(text: string): number {
    let at = 1;
    while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
    return at + 1;
}

/** Both names in a `diff --git` line; git repeats the same name unless lines below say otherwise. */
function namesInHeader(line: string): string {
    const rest = line.slice("diff --git ".length);
    // A name with a quote in it is quoted itself.
    if (rest.endsWith('"')) return withoutPrefix(rest.slice((rest.startsWith('"') ? endOfQuoted(rest) : rest.indexOf(' "')) + 1));
    const half = rest.slice((rest.length + 1) / 2);
    if (rest === `a/${half.slice(2)} ${half}`) return withoutPrefix(half);
    return withoutPrefix(rest.slice(rest.lastIndexOf(" b/") + 1));
}

class Reader {
    readonly files: DiffFile[] = [];
    private file: DiffFile | null = null;
    private hunk: Hunk | null = null;
    private oldNumber = 0;
    private newNumber = 0;
    private oldLeft = 0;
    private newLeft = 0;

    line(text: string): void {
        // Inside a hunk its own counts rule: "--- x" may be a deleted line "-- x".
        if (this.hunk && (this.oldLeft > 0 || this.newLeft > 0) && this.hunkLine(text)) return;
        if (text.startsWith("diff --git ")) return this.startFile(namesInHeader(text));
        if (text.startsWith("\\") && this.hunk) return this.push("note", text.slice(1).trim(), null, null);
        const hunk = HUNK.exec(text);
        if (hunk) return this.startHunk(hunk, text);
        this.headerLine(text);
    }

    private startFile(path: string): void {
        this.hunk = null;
        this.file = { path, oldPath: null, status: "modified", notes: [], hunks: [], additions: 0, deletions: 0 };
        this.files.push(this.file);
    }

    private startHunk(match: RegExpExecArray, header: string): void {
        if (!this.file) this.startFile("(unnamed)");
        this.oldNumber = Number(match[1]);
        this.newNumber = Number(match[3]);
        this.oldLeft = Number(match[2] ?? 1);
        this.newLeft = Number(match[4] ?? 1);
        this.hunk = { header, lines: [] };
        this.file?.hunks.push(this.hunk);
    }

    private headerLine(text: string): void {
        if (text.startsWith("--- ")) {
            if (!this.file || this.file.hunks.length > 0) this.startFile(withoutPrefix(text.slice(4)));
            return;
        }
        const file = this.file;
        if (!file) return;
        if (text.startsWith("+++ ")) {
            if (text !== "+++ /dev/null") file.path = withoutPrefix(text.slice(4));
        } else if (text.startsWith("new file mode")) file.status = "added";
        else if (text.startsWith("deleted file mode")) file.status = "deleted";
        else if (text.startsWith("rename from ")) {
            file.status = "renamed";
            file.oldPath = unquote(text.slice(12));
        } else if (text.startsWith("rename to ")) file.path = unquote(text.slice(10));
        else if (/^(Binary files|GIT binary patch|old mode|new mode|copy from|copy to)/.test(text)) file.notes.push(text);
    }

    private hunkLine(text: string): boolean {
        const file = this.file!;
        if (text.startsWith("+")) {
            file.additions++;
            this.newLeft--;
            this.push("add", text.slice(1), null, this.newNumber++);
        } else if (text.startsWith("-")) {
            file.deletions++;
            this.oldLeft--;
            this.push("delete", text.slice(1), this.oldNumber++, null);
        } else if (text.startsWith(" ") || text === "") {
            this.oldLeft--;
            this.newLeft--;
            this.push("context", text.slice(1), this.oldNumber++, this.newNumber++);
        } else if (text.startsWith("\\")) this.push("note", text.slice(1).trim(), null, null);
        else return false;
        return true;
    }

    private push(kind: LineKind, text: string, oldNumber: number | null, newNumber: number | null): void {
        this.hunk!.lines.push({ kind, text, oldNumber, newNumber });
    }
}

export function parseDiff(diff: string): DiffFile[] {
    const reader = new Reader();
    const lines = diff.split("\n");
    if (lines.at(-1) === "") lines.pop();
    for (const line of lines) reader.line(line);
    return reader.files;
}

/** Changed lines with their sign, trimmed, counted per file, for `similarity`. */
function changedLines(files: readonly DiffFile[]): Map<string, number> {
    const counts = new Map<string, number>();
    for (const file of files)
        for (const hunk of file.hunks)
            for (const line of hunk.lines)
                if (line.kind === "add" || line.kind === "delete") {
                    const key = `${file.path}\n${line.kind === "add" ? "+" : "-"}${line.text.trim()}`;
                    counts.set(key, (counts.get(key) ?? 0) + 1);
                }
    return counts;
}

/**
 * How much of two patches is the same, 0 to 100: changed lines in common (same file, same
 * sign, blanks at the ends ignored, repeated lines counted) over all changed lines. Null
 * when there is nothing to compare.
 */
export function similarity(mine: readonly DiffFile[], reference: readonly DiffFile[]): number | null {
    const a = changedLines(mine), b = changedLines(reference);
    if (a.size === 0 || b.size === 0) return null;
    let common = 0, all = 0;
    for (const key of new Set([...a.keys(), ...b.keys()])) {
        common += Math.min(a.get(key) ?? 0, b.get(key) ?? 0);
        all += Math.max(a.get(key) ?? 0, b.get(key) ?? 0);
    }
    return Math.round((common / all) * 100);
}
