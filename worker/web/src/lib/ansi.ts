// Terminal output as styled text for log views: SGR colours and carriage returns are shown,
// every other control sequence is dropped, none is ever answered.

export interface Span {
    readonly text: string;
    readonly className: string;
}

// CSI, OSC (ended by BEL or ST), other string sequences, two-byte escapes, lone controls.
const CONTROL = /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][^\x1b]*(?:\x1b\\)?|\x1b[ -/]*[0-~]?|[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]/g;

interface Pen { fg: string; bg: string; bold: boolean; dim: boolean; italic: boolean; underline: boolean; inverse: boolean }
const PLAIN: Pen = { fg: "", bg: "", bold: false, dim: false, italic: false, underline: false, inverse: false };

/** A carriage return starts the line again: keep what was written last (progress bars). */
function afterReturns(line: string): string {
    if (!line.includes("\r")) return line;
    const parts = line.split("\r").filter((part) => part !== "");
    return parts.at(-1) ?? "";
}

/** The classes of a palette colour; 24-bit and 256-colour values fall to the nearest of 16. */
function nearest(r: number, g: number, b: number): number {
    const high = Math.max(r, g, b);
    if (high < 48) return 0;
    const base = (r > high * 0.6 ? 1 : 0) | (g > high * 0.6 ? 2 : 0) | (b > high * 0.6 ? 4 : 0);
    return high > 190 ? base + 8 : base;
}

function from256(n: number): number {
    if (n < 16) return n;
    if (n >= 232) return n < 244 ? 8 : 7;
    const level = (v: number) => (v === 0 ? 0 : 55 + v * 40);
    const c = n - 16;
    return nearest(level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6));
}

/** Reads an extended colour at codes[at] (38 or 48); returns how many codes it took. */
function extended(codes: number[], at: number, set: (n: number) => void): number {
    if (codes[at + 1] === 5) {
        set(from256(codes[at + 2] ?? 0));
        return 2;
    }
    if (codes[at + 1] === 2) {
        set(nearest(codes[at + 2] ?? 0, codes[at + 3] ?? 0, codes[at + 4] ?? 0));
        return 4;
    }
    return 0;
}

function applySgr(pen: Pen, parameters: string): Pen {
    let next = { ...pen };
    const codes = parameters.split(/[;:]/).map((p) => Number(p || 0));
    for (let i = 0; i < codes.length; i++) {
        const code = codes[i]!;
        if (code === 0) next = { ...PLAIN };
        else if (code === 1) next.bold = true;
        else if (code === 2) next.dim = true;
        else if (code === 3) next.italic = true;
        else if (code === 4) next.underline = true;
        else if (code === 7) next.inverse = true;
        else if (code === 22) next.bold = next.dim = false;
        else if (code === 23) next.italic = false;
        else if (code === 24) next.underline = false;
        else if (code === 27) next.inverse = false;
        else if (code >= 30 && code <= 37) next.fg = `${code - 30}`;
        else if (code === 38) i += extended(codes, i, (n) => (next.fg = `${n}`));
        else if (code === 39) next.fg = "";
        else if (code >= 40 && code <= 47) next.bg = `${code - 40}`;
        else if (code === 48) i += extended(codes, i, (n) => (next.bg = `${n}`));
        else if (code === 49) next.bg = "";
        else if (code >= 90 && code <= 97) next.fg = `${code - 82}`;
        else if (code >= 100 && code <= 107) next.bg = `${code - 92}`;
    }
    return next;
}

function classOf(pen: Pen): string {
    const names = [];
    if (pen.fg) names.push(`fg${pen.fg}`);
    if (pen.bg) names.push(`bg${pen.bg}`);
    if (pen.bold) names.push("bold");
    if (pen.dim) names.push("dim");
    if (pen.italic) names.push("italic");
    if (pen.underline) names.push("underline");
    if (pen.inverse) names.push("inverse");
    return names.join(" ");
}

/** One line of a log as spans. */
export function ansiSpans(line: string): Span[] {
    const text = afterReturns(line);
    const spans: Span[] = [];
    let pen = PLAIN, at = 0;
    const push = (end: number) => {
        if (end > at) spans.push({ text: text.slice(at, end), className: classOf(pen) });
    };
    for (const match of text.matchAll(CONTROL)) {
        push(match.index);
        at = match.index + match[0].length;
        if (match[2] === "m" && /^[\d;:]*$/.test(match[1] ?? "")) pen = applySgr(pen, match[1] ?? "");
    }
    push(text.length);
    return spans;
}

/** The line without any control sequence, for search. */
export function plainText(line: string): string {
    return /[\x00-\x1f\x7f-\x9f]/.test(line) ? afterReturns(line).replace(CONTROL, "") : line;
}
