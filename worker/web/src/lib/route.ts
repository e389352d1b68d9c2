// Where the reader is, as a path below the page's base address.

import { signal } from "@preact/signals";

export interface Route {
    /** Path below the base, split at slashes and decoded: ["runs", "ID", "changes"]. */
    readonly path: readonly string[];
    readonly query: URLSearchParams;
}

const base = new URL(document.baseURI);

/** A static site has no server that would answer deep paths: there the path is a fragment. */
export const isStatic = document.documentElement.dataset.mode === "static";

function read(): Route {
    const here = new URL(location.href);
    const text = isStatic ? here.hash.replace(/^#\/?/, "") : here.pathname.slice(base.pathname.length) + here.search;
    const [path = "", query = ""] = text.split("?", 2);
    return { path: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

function decode(part: string): string {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

export const route = signal<Route>(read());

/** An address for links: `path` below the base, with the given query values (empty ones left out). */
export function address(path: readonly string[], query: Record<string, string | number | undefined> = {}): string {
    const params = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") params.set(name, `${value}`);
    const tail = path.map(encodeURIComponent).join("/") + (params.size ? `?${params}` : "");
    return isStatic ? `${location.pathname}#/${tail}` : base.pathname + tail;
}

/** Go to an address made by `address`; `replace` leaves no step for the back button. */
export function go(to: string, { replace = false } = {}): void {
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    route.value = read();
}

/** Change query values of the current place without a step for the back button. */
export function setQuery(change: Record<string, string | number | undefined>): void {
    const now = route.peek();
    go(address(now.path, { ...Object.fromEntries(now.query), ...change }), { replace: true });
}

/** Links are plain links; a plain click on one of ours stays in the page. */
function followInPage(event: MouseEvent): void {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(base.pathname) || link.pathname.startsWith(`${base.pathname}api/`)) return;
    if (link.protocol !== location.protocol) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
}

export function startRouting(): void {
    addEventListener("popstate", () => (route.value = read()));
    addEventListener("hashchange", () => (route.value = read()));
    document.addEventListener("click", followInPage);
}
