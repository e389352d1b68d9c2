// Reads {"entries":[...]} as it arrives, so that the first rows of a huge dialog show before
// the last ones are here, and no single piece of parsing is long.

import { isRecord } from "./shape";

/** Characters of a piece: the first soon, later ones with less overhead. */
const FIRST_PIECE = 64 * 1024;
const PIECE = 512 * 1024;

/**
 * Where one entry ends and the next begins. Inside a JSON string its quotes would be escaped,
 * so this stands between objects only; between nested ones too, which parsing then shows.
 */
const BETWEEN = '},{"seq":';

export interface Piece {
    readonly entries: readonly unknown[];
    /** What stands beside the entries; only with the last piece. */
    readonly rest: Readonly<Record<string, unknown>>;
}

function parseList(text: string): unknown[] | null {
    try {
        return JSON.parse(`[${text}]`) as unknown[];
    } catch {
        return null;
    }
}

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
        const cut = text.lastIndexOf(BETWEEN);
        const entries = cut < 0 ? null : parseList(text.slice(0, cut + 1));
        // A cut inside an entry: wait for more text and try again.
        wanted = entries ? PIECE : text.length + PIECE;
        if (!entries) continue;
        text = text.slice(cut + 2);
        yield { entries, rest: {} };
    }
    const last: unknown = JSON.parse(inList ? `{"entries":[${text}` : text);
    if (!isRecord(last) || !Array.isArray(last.entries)) throw new Error("The server's answer is not as expected (answer.entries)");
    yield { entries: last.entries, rest: last };
}
