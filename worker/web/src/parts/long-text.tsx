// Text of any length: its beginning first, the rest one click away, never lost.

import { useState } from "preact/hooks";
import { bytes } from "../lib/format";
import { Button, CopyButton, saveText } from "./basics";

/** Shown before anything is clicked. */
const FIRST = 2_000;
/** Added by each click; more at once would make the page wait. */
const MORE = 100_000;

interface Props {
    text: string;
    /** File name for saving the whole. */
    name: string;
    first?: number;
    className?: string;
}

export function LongText({ text, name, first = FIRST, className = "" }: Props) {
    const [shown, setShown] = useState(first);
    const cut = text.length > shown * 1.2;
    return (
        <div class="long-text">
            <pre class={className} tabIndex={className.includes("wrap") ? undefined : 0}>{cut ? text.slice(0, shown) : text}</pre>
            <div class="long-text-tools">
                {cut && <span class="dim">{bytes(shown)} of {bytes(text.length)}</span>}
                {cut && <Button kind="quiet" label={text.length - shown > MORE ? `Show ${bytes(MORE)} more` : "Show all"}
                    onClick={() => setShown(shown + MORE)} />}
                {shown > first && <Button kind="quiet" label="Show less" onClick={() => setShown(first)} />}
                {cut && <Button kind="quiet" icon="download" label="Save" onClick={() => saveText(name, text)} />}
                <CopyButton text={() => text} />
            </div>
        </div>
    );
}
