// Reads {"entries":[...]} as it arrives, so that the first rows of a huge dialog show before
// the last ones are here, and no single piece of parsing is long.

import { isRecord } from "./shape";

/** Characters of a piece: the first soon, later ones with less overhead. */
const FIRST_PIECE = 64 * 1024;
const PIECE = 512 * 1024;

/** The server writes an entry a line, and JSON has no bare line feed inside a string. */
const BETWEEN = ",\n";

export interface Piece {
    readonly entries: readonly unknown[];
    /** What stands beside the entries; only with the last piece. */
    readonly rest: Readonly<Record<string, unknown>>;
}

/** The whole entries at the head of `text`, and how many characters they take; null: none yet. */
function wholeEntries(text: string): { entries: unknown[]; used: number } | null {
    const cut = text.lastIndexOf(BETWEEN);
    return cut < 0 ? null : { entries: JSON.parse(`[${text.slice(0, cut)}]`) as unknown[], used: cut + BETWEEN.length };
}

/** Lets the browser draw: what has arrived already would else be read in one long task. */
const turn = () => new Promise((done) => setTimeout(done));

/** The start of the list in the head of the document, or -1. */
function listStart(text: string): number {
    const match = /^\s*\{\s*"entries"\s*:\s*\[/.exec(text);
    return match ? match[0].length : -1;
}

export async function* readEntries(response: Response): AsyncGenerator<Piece> {
    if (!response.body) throw new Error("The answer is empty");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "", inList = false, wanted = FIRST_PIECE;
    for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        text += value;
        if (text.length < wanted) continue;
        if (!inList) {
            const start = listStart(text);
            if (start < 0) continue;
            text = text.slice(start);
            inList = true;
        }
        const whole = wholeEntries(text);
        // An entry that is longer than the piece: wait for more text and try again.
        wanted = whole ? PIECE : text.length + PIECE;
        if (!whole) continue;
        text = text.slice(whole.used);
        yield { entries: whole.entries, rest: {} };
        await turn();
    }
    const last: unknown = JSON.parse(inList ? `{"entries":[${text}` : text);
    if (!isRecord(last) || !Array.isArray(last.entries)) throw new Error("The server's answer is not as expected (answer.entries)");
    yield { entries: last.entries, rest: last };
}
