// A parsed diff as one windowed list: file heads that fold, hunks, lines with both numbers.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { DiffFile, DiffLine } from "../lib/diff";
import type { Highlighter, Piece } from "../lib/highlight";
import { loadHighlighter } from "../lib/highlight";
import { Icon } from "../parts/icons";
import { CopyButton } from "../parts/basics";
import type { ListControl } from "../parts/virtual-list";
import { VirtualList } from "../parts/virtual-list";

type Item =
    | { readonly kind: "file"; readonly file: DiffFile; readonly index: number }
    | { readonly kind: "hunk"; readonly text: string }
    | { readonly kind: "note"; readonly text: string }
    | { readonly kind: "line"; readonly file: DiffFile; readonly line: DiffLine };

const LETTERS = { modified: "M", added: "A", deleted: "D", renamed: "R" } as const;
/** Longer lines are not coloured: it would take too long. */
const HIGHLIGHT_MAX = 2_000;

function itemsOf(files: readonly DiffFile[], closed: ReadonlySet<string>): Item[] {
    const items: Item[] = [];
    files.forEach((file, index) => {
        items.push({ kind: "file", file, index });
        if (closed.has(file.path)) return;
        for (const text of file.notes) items.push({ kind: "note", text });
        for (const hunk of file.hunks) {
            items.push({ kind: "hunk", text: hunk.header });
            for (const line of hunk.lines) items.push({ kind: "line", file, line });
        }
    });
    return items;
}

/** Names a line in an address: file, side (L old, R new), number. */
export function lineName(file: DiffFile, line: DiffLine): string {
    return `${file.path}:${line.newNumber !== null ? `R${line.newNumber}` : `L${line.oldNumber}`}`;
}

/** Five blocks: the share of added and removed lines. */
function Blocks({ file }: { file: DiffFile }) {
    const all = file.additions + file.deletions;
    const plus = all === 0 ? 0 : Math.round((file.additions / all) * 5);
    return <span class="blocks" aria-hidden="true">{[0, 1, 2, 3, 4].map((i) => <i key={i} class={all === 0 ? "" : i < plus ? "plus" : "minus"} />)}</span>;
}

function FileHead({ file, open, onToggle }: { file: DiffFile; open: boolean; onToggle: () => void }) {
    return (
        <div class="diff-file">
            <button type="button" class="diff-file-button" aria-expanded={open} onClick={onToggle}>
                <Icon name={open ? "down" : "right"} size={14} />
                <span class={`letter ${file.status}`}>{LETTERS[file.status]}</span>
                <span class="diff-path">{file.oldPath && <span class="dim">{file.oldPath} → </span>}{file.path}</span>
            </button>
            <CopyButton text={() => file.path} label="Copy path" />
            <span class="added">+{file.additions}</span><span class="removed">−{file.deletions}</span><Blocks file={file} />
        </div>
    );
}

function Code({ pieces }: { pieces: readonly Piece[] }) {
    return <>{pieces.map((piece, i) => (piece.className ? <span key={i} class={piece.className}>{piece.text}</span> : piece.text))}</>;
}

function Line({ file, line, href, marked, highlighter }: { file: DiffFile; line: DiffLine; href: string; marked: boolean; highlighter: Highlighter | null }) {
    const sign = { add: "+", delete: "−", context: " ", note: "\\" }[line.kind];
    const pieces = highlighter && line.kind !== "note" && line.text.length <= HIGHLIGHT_MAX ? highlighter(file.path, line.text) : null;
    return (
        <div class={`diff-line ${line.kind} ${marked ? "marked" : ""}`}>
            <span class="line-number">{line.oldNumber ?? ""}</span>
            {line.kind === "note" ? <span class="line-number" /> : <a class="line-number" href={href} aria-label={`Line ${line.newNumber ?? line.oldNumber}`}>{line.newNumber ?? ""}</a>}
            <span class="sign" aria-hidden="true">{sign}</span>
            <code>{pieces ? <Code pieces={pieces} /> : line.text || " "}</code>
        </div>
    );
}

interface Props {
    files: readonly DiffFile[];
    label: string;
    wrap: boolean;
    /** A file or line ("path:R12") to bring into view. */
    target: string | null;
    href: (line: string) => string;
    /** Changes when all files shall be opened (even) or closed (odd). */
    folds: { readonly closed: boolean; readonly turn: number };
}

export function DiffList({ files, label, wrap, target, href, folds }: Props) {
    const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
    const [highlighter, setHighlighter] = useState<Highlighter | null>(null);
    const control = useRef<ListControl | null>(null);
    useEffect(() => {
        if (folds.turn > 0) setClosed(folds.closed ? new Set(files.map((file) => file.path)) : new Set());
    }, [folds.turn]);
    useEffect(() => {
        let gone = false;
        // Without colours the diff reads as well.
        loadHighlighter().then((loaded) => gone || setHighlighter(() => loaded), () => {});
        return () => void (gone = true);
    }, []);
    const items = useMemo(() => itemsOf(files, closed), [files, closed]);
    useEffect(() => {
        if (!target) return;
        const at = items.findIndex((item) => (item.kind === "file" ? item.file.path === target : item.kind === "line" && lineName(item.file, item.line) === target));
        if (at >= 0) queueMicrotask(() => control.current?.show(Math.max(0, at - (items[at]!.kind === "file" ? 0 : 4))));
    }, [target, items]);
    const toggle = (path: string) => {
        const next = new Set(closed);
        if (!next.delete(path)) next.add(path);
        setClosed(next);
    };
    const render = (i: number) => {
        const item = items[i]!;
        switch (item.kind) {
        case "file": return <FileHead file={item.file} open={!closed.has(item.file.path)} onToggle={() => toggle(item.file.path)} />;
        case "hunk": return <div class="diff-hunk">{item.text}</div>;
        case "note": return <div class="diff-note">{item.text}</div>;
        case "line": {
            const name = lineName(item.file, item.line);
            return <Line file={item.file} line={item.line} href={href(name)} marked={name === target} highlighter={highlighter} />;
        }
        }
    };
    return <VirtualList className={`diff ${wrap ? "wrapped" : ""}`} count={items.length} estimate={20} epoch={`${wrap}`} label={label}
        control={(c) => (control.current = c)} render={render} />;
}
