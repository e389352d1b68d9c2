// Markdown as clean nodes.

import { useLayoutEffect, useRef } from "preact/hooks";
import { markdownNodes } from "../lib/sanitize";
import { LongText } from "./long-text";

/** Characters. The worst text costs the square of its length: half a second at four times as much. */
const MARKDOWN_MAX = 16_000;

function Nodes({ text }: { text: string }) {
    const place = useRef<HTMLDivElement>(null);
    useLayoutEffect(() => place.current?.replaceChildren(markdownNodes(text)), [text]);
    return <div class="markdown" ref={place} />;
}

/** A longer text is shown as it is; `name` is that of its file. */
export function Markdown({ text, name }: { text: string; name: string }) {
    if (text.length > MARKDOWN_MAX) return <LongText text={text} name={name} className="wrap" first={20_000} />;
    return <Nodes text={text} />;
}
