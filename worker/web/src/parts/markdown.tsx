// Markdown as clean nodes.

import { useLayoutEffect, useRef } from "preact/hooks";
import { markdownNodes } from "../lib/sanitize";

export function Markdown({ text }: { text: string }) {
    const place = useRef<HTMLDivElement>(null);
    useLayoutEffect(() => place.current?.replaceChildren(markdownNodes(text)), [text]);
    return <div class="markdown" ref={place} />;
}
