// The frame around every view: sidebar, connection, token prompt.

import type { ComponentType } from "preact";
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { locked } from "../lib/api";
import { address, go, route } from "../lib/route";
import { known } from "../stores/opened";
import { health, started } from "../stores/session";
import { Blank, Button } from "../parts/basics";
import { Boundary } from "../parts/boundary";
import { unseen } from "../stores/notifications";
import { CompareView } from "./compare";
import { ConnectionView } from "./connection";
import { LaunchView } from "./launch";
import { LaunchingView } from "./launching";
import { MatrixView } from "./matrix";
import { KeyHelp, Toasts } from "./overlays";
import { RunsView } from "./runs";
import { RunView } from "./run";
import { SearchView } from "./search";
import { SettingsView } from "./settings";
import { Sidebar } from "./sidebar";
import { TokenPrompt } from "./token-prompt";

/** On narrow screens the sidebar slides over the page. */
export const sidebarOpen = signal(false);

interface Page { readonly title: string; readonly view: ComponentType }

function Missing() {
    return <Blank top title="There is nothing at this address"><a href={address(["runs"])}>To the run list</a></Blank>;
}

function pageOf(path: readonly string[]): Page {
    switch (path[0]) {
    case "runs": return path[1] ? { title: known.value.get(path[1])?.taskId ?? path[1], view: RunView } : { title: "Runs", view: RunsView };
    case "matrix": return { title: "Matrix", view: MatrixView };
    case "compare": return { title: "Compare", view: CompareView };
    case "search": return { title: "Search dialogs", view: SearchView };
    case "launch": return { title: "Launch", view: LaunchView };
    case "launches": return { title: "Launching", view: LaunchingView };
    case "settings": return { title: "Settings", view: SettingsView };
    case "connection": return { title: "Connection", view: ConnectionView };
    default: return { title: "Not found", view: Missing };
    }
}

export function Frame() {
    const { path } = route.value;
    useEffect(() => {
        if (path.length === 0) go(address(["runs"]), { replace: true });
        sidebarOpen.value = false;
    }, [path.join("/")]);
    if (!started.value) return <div class="starting" aria-busy="true" />;
    const page = pageOf(path.length ? path : ["runs"]);
    const View = page.view;
    document.title = `${unseen.value ? `(${unseen.value}) ` : ""}${page.title} · SSEBench`;
    return (
        <>
            {locked.value && <TokenPrompt />}
            {/* No view behind the first prompt: what it asked for would be refused, and stay so on the screen. */}
            {(!locked.value || health.value) && <div class="frame" inert={locked.value} hidden={locked.value}>
                <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
                <Sidebar open={sidebarOpen.value} onClose={() => (sidebarOpen.value = false)} />
                <div class="stage">
                    <header class="narrow-bar">
                        <Button kind="quiet" bare icon="menu" label="Menu" onClick={() => (sidebarOpen.value = true)} />
                        <strong>SSEBench</strong>
                    </header>
                    <main id="main" class="main" tabIndex={-1}><Boundary key={page.view === RunView ? path[1] : path[0]}><View /></Boundary></main>
                </div>
            </div>}
            <KeyHelp />
            <Toasts />
        </>
    );
}
