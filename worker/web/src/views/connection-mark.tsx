// One small honest indicator of the connection to the server.

import { computed } from "@preact/signals";
import { address } from "../lib/route";
import { channels } from "../lib/channel";
import { health, healthError } from "../stores/session";

interface Mark { readonly kind: "good" | "wait" | "down"; readonly word: string; readonly detail: string }

const mark = computed<Mark>(() => {
    if (healthError.value) return { kind: "down", word: "Offline", detail: healthError.value };
    const broken = channels.value.filter((channel) => channel.state === "waiting");
    if (broken.length > 0) return { kind: "wait", word: "Reconnecting", detail: broken.map((c) => `${c.name}: ${c.reason}`).join("; ") };
    if (health.value && !health.value.runner)
        return { kind: "wait", word: "No runner", detail: health.value.runnerError ?? "The ssebench command does not answer" };
    return { kind: "good", word: "Connected", detail: health.value?.backend ? `Backend: ${health.value.backend}` : "The server answers" };
});

export function ConnectionMark() {
    const { kind, word, detail } = mark.value;
    return (
        <a class={`connection ${kind}`} href={address(["connection"])} title={detail}>
            <span class="dot" aria-hidden="true" /><span role="status">{word}</span>
        </a>
    );
}
