// Asks for the access token when the server wants one.

import { useEffect, useRef, useState } from "preact/hooks";
import { submitToken } from "../stores/session";

export function TokenPrompt() {
    const [text, setText] = useState("");
    const [error, setError] = useState<string | null>(null);
    const [busy, setBusy] = useState(false);
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current?.focus(), []);
    const submit = async (event: Event) => {
        event.preventDefault();
        if (busy || text.trim() === "") return;
        setBusy(true);
        const refusal = await submitToken(text);
        setBusy(false);
        setError(refusal);
        if (refusal) field.current?.select();
    };
    return (
        <main class="gate">
            <form class="gate-card" onSubmit={submit} aria-labelledby="gate-title">
                <h1 id="gate-title">SSEBench</h1>
                <p>This server asks for an access token: the one made for you, or the value of <code>SSEBENCH_WEBUI_TOKEN</code> where the server was started, or what the file <code>SSEBENCH_WEBUI_TOKEN_FILE</code> holds.</p>
                <label for="token">Access token</label>
                <input id="token" ref={field} type="password" autocomplete="off" spellcheck={false} value={text}
                    aria-invalid={error !== null} aria-describedby={error ? "token-error" : undefined}
                    onInput={(event) => setText(event.currentTarget.value)} />
                {error && <p id="token-error" class="field-error" role="alert">{error}</p>}
                <button type="submit" class="button primary" disabled={busy || text.trim() === ""}>
                    {busy ? "Checking..." : "Continue"}
                </button>
                <p class="dim">The token stays in this browser tab and is forgotten when the tab closes.</p>
            </form>
        </main>
    );
}
