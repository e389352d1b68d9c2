// Search in the dialogs of all runs; results are links to the entry.

import { useEffect, useState } from "preact/hooks";
import { plural } from "../lib/format";
import { address, route, setQuery } from "../lib/route";
import { Blank, Button, Notice, SearchField } from "../parts/basics";
import type { Hit } from "../stores/search";
import { searchState, startSearch, stopSearch } from "../stores/search";

function Marked({ text, needle }: { text: string; needle: string }) {
    const at = text.toLowerCase().indexOf(needle.toLowerCase());
    if (at < 0) return <>{text}</>;
    return <>{text.slice(0, at)}<mark>{text.slice(at, at + needle.length)}</mark>{text.slice(at + needle.length)}</>;
}

function byRun(hits: readonly Hit[]): Hit[][] {
    const groups = new Map<string, Hit[]>();
    for (const hit of hits) groups.set(hit.id, [...(groups.get(hit.id) ?? []), hit]);
    return [...groups.values()];
}

export function SearchView() {
    const asked = route.value.query.get("q") ?? "";
    const [text, setText] = useState(asked);
    const { hits, busy, complete, scanned, total, error } = searchState.value;
    useEffect(() => startSearch(asked), [asked]);
    useEffect(() => stopSearch, []);
    const submit = (event: Event) => {
        event.preventDefault();
        setQuery({ q: text.trim() });
    };
    return (
        <div class="search-view">
            <header class="view-head"><h1>Search dialogs</h1></header>
            <form class="filters" onSubmit={submit} role="search">
                <SearchField value={text} onValue={setText} label="Search the dialogs of all runs" placeholder="Words in any dialog" />
                <Button type="submit" kind="primary" label="Search" disabled={!text.trim()} />
                {busy && <Button label="Stop" onClick={stopSearch} />}
            </form>
            {error && <Notice tone="bad">{error}</Notice>}
            {asked && <p class="search-line dim" role="status">
                {plural(hits.length, "hit")}{total > 0 && `; ${scanned} of ${plural(total, "run")} read`}{busy ? " …" : complete ? "" : scanned < total ? ": the time or the number of hits ran out before all runs were read" : "; of runs with many hits the first are shown"}
            </p>}
            <div class="search-results" tabIndex={0} role="region" aria-label="Results">
                {!asked ? <Blank title="Search in what the agents said and did">Tool calls and their results included; newest runs first.</Blank>
                    : hits.length === 0 ? <Blank busy={busy} title={busy ? "Searching" : "Nothing found"} />
                    : byRun(hits).map((group) => (
                        <section key={group[0]!.id} class="search-run">
                            <h2><a href={address(["runs", group[0]!.id])}>{group[0]!.taskId}</a> <span class="dim">{group[0]!.agent === "reference" ? "reference" : `${group[0]!.model} · ${group[0]!.agent}`}</span></h2>
                            <ul>{group.map((hit) => <li key={hit.seq}><a class="hit" href={address(["runs", hit.id, "dialog"], { e: hit.seq })}><span class="hit-type">{hit.type}</span><span class="hit-text"><Marked text={hit.excerpt} needle={asked} /></span></a></li>)}</ul>
                        </section>
                    ))}
            </div>
        </div>
    );
}
