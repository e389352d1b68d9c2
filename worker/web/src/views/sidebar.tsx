// The sidebar: where one can go, which runs are open, how the connection is.

import { address, go, route } from "../lib/route";
import type { IconName } from "../parts/icons";
import { Icon } from "../parts/icons";
import { Button } from "../parts/basics";
import { statusWord } from "../parts/run-marks";
import { closeRun, known, openIds } from "../stores/opened";
import { dropFeed } from "../stores/feed";
import { change, settings } from "../stores/settings";
import { canSignOut, signOut } from "../stores/session";
import { ConnectionMark } from "./connection-mark";

interface Place { readonly path: string; readonly label: string; readonly icon: IconName }

const PLACES: readonly Place[] = [
    { path: "runs", label: "Runs", icon: "runs" },
];

function OpenRun({ id }: { id: string }) {
    const run = known.value.get(id);
    const current = route.value.path[0] === "runs" && route.value.path[1] === id;
    const close = () => {
        const next = closeRun(id);
        dropFeed(id);
        if (current) go(next ? address(["runs", next]) : address(["runs"]));
    };
    return (
        <li class="open-run">
            <a href={address(["runs", id])} aria-current={current ? "page" : undefined}>
                <span class={`dot ${run?.source === "results" ? "finished" : run?.status ?? "unknown"}`} aria-hidden="true" />
                <span class="open-run-text">
                    <span class="open-run-task">{run?.taskId ?? id}</span>
                    <span class="open-run-model">{run ? `${statusWord(run)} · ${run.model} · ${run.agent}` : "not listed"}</span>
                </span>
            </a>
            <Button kind="quiet" bare icon="close" label={`Close ${run?.taskId ?? id}`} onClick={close} />
        </li>
    );
}

function ThemeSwitch() {
    const dark = settings.value.theme === "dark"
        || (settings.value.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
    return <Button kind="quiet" bare icon={dark ? "sun" : "moon"} label={dark ? "Light colours" : "Dark colours"}
        onClick={() => change({ theme: dark ? "light" : "dark" })} />;
}

export function Sidebar({ open, onClose }: { open: boolean; onClose: () => void }) {
    const here = route.value.path[0] ?? "runs";
    return (
        <>
            {open && <div class="veil" onClick={onClose} />}
            <nav class={`sidebar ${open ? "open" : ""}`} aria-label="Main">
                <a class="brand" href={address(["runs"])}>SSEBench</a>
                <ul class="places">
                    {PLACES.map((place) => (
                        <li key={place.path}>
                            <a href={address([place.path])} aria-current={here === place.path && !route.value.path[1] ? "page" : undefined}>
                                <Icon name={place.icon} />{place.label}
                            </a>
                        </li>
                    ))}
                </ul>
                <h2 class="side-title">Open runs</h2>
                {openIds.value.length === 0 && <p class="side-empty">None. Choose one from the list.</p>}
                <ul class="open-runs">{openIds.value.map((id) => <OpenRun key={id} id={id} />)}</ul>
                <div class="side-foot">
                    <ConnectionMark />
                    <span class="grow" />
                    <ThemeSwitch />
                    {canSignOut.value && <Button kind="quiet" bare icon="cross" label="Forget the token" onClick={signOut} />}
                </div>
            </nav>
        </>
    );
}
