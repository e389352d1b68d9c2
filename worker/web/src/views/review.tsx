// The reviewer's note, as the plain text it is.

import { Blank } from "../parts/basics";

export function ReviewPane({ text }: { text: string | null }) {
    if (text === null) return <Blank title="No review note" />;
    return <div class="scroll pad review" tabIndex={0} role="region" aria-label="Review note">{text}</div>;
}
