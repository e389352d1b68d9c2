// Syntax colours for lines of code, as pieces of text with a class; loaded when first needed.

export interface Piece { readonly text: string; readonly className: string }
/** Pieces of one line of the file at `path`, or null when its language is not known. */
export type Highlighter = (path: string, line: string) => readonly Piece[] | null;

let loading: Promise<Highlighter> | null = null;

export function loadHighlighter(): Promise<Highlighter> {
    loading ??= import("./highlight-languages").then((module) => module.highlightLine);
    // A part that did not arrive (the server was away) may be asked for again.
    loading.catch(() => (loading = null));
    return loading;
}
