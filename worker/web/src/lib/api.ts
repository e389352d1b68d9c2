// Requests to the server: the token goes along, answers are checked, errors keep their hint.

import { signal } from "@preact/signals";
import { isStatic } from "./route";
import { staticAnswer } from "./static-site";
import type { Shape, TypeOf } from "./shape";
import { isRecord, misfit } from "./shape";

const TOKEN_KEY = "ssebench-webui-token";

/** The access token of this tab, or null. Kept in sessionStorage only. */
export const token = signal<string | null>(storedToken());
/** True from a 401 until a token is accepted. */
export const locked = signal(false);

function storedToken(): string | null {
    try {
        return sessionStorage.getItem(TOKEN_KEY);
    } catch {
        return null;
    }
}

export function keepToken(value: string | null): void {
    token.value = value;
    try {
        if (value === null) sessionStorage.removeItem(TOKEN_KEY);
        else sessionStorage.setItem(TOKEN_KEY, value);
    } catch {
        // Storage is refused: the token lives in memory until the page is left.
    }
}

export class ApiError extends Error {
    constructor(readonly status: number, message: string, readonly hint: string | null) {
        super(message);
    }
}

/** The address of `path` (without a leading slash), below the page's base. */
export function apiUrl(path: string): URL {
    return new URL(`api/${path}`, document.baseURI);
}

export function socketUrl(path: string): string {
    const url = apiUrl(path);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
}

/** The subprotocols that prove the token; none without one. */
export function socketProtocols(): string[] {
    if (token.value === null) return [];
    const bytes = new TextEncoder().encode(token.value);
    const text = btoa(String.fromCharCode(...bytes));
    return ["ssebench", `ssebench.token.${text.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "")}`];
}

export function authorization(): Record<string, string> {
    return token.value === null ? {} : { Authorization: `Bearer ${token.value}` };
}

interface Options {
    method?: "GET" | "POST" | "DELETE";
    body?: unknown;
    signal?: AbortSignal | undefined;
    headers?: Record<string, string>;
}

/** Ask for `path`; a status other than 2xx throws an ApiError. */
export async function request(path: string, options: Options = {}): Promise<Response> {
    const headers: Record<string, string> = { ...authorization(), ...options.headers };
    const init: RequestInit = { method: options.method ?? "GET", headers };
    if (options.signal) init.signal = options.signal;
    if (options.body !== undefined) {
        headers["Content-Type"] = "application/json";
        init.body = JSON.stringify(options.body);
    }
    const response = isStatic ? await staticAnswer(path, init) : await fetch(apiUrl(path), init);
    if (response.status === 401) locked.value = true;
    if (!response.ok) throw await errorOf(response);
    return response;
}

async function errorOf(response: Response): Promise<ApiError> {
    let error = `HTTP ${response.status}${response.statusText ? `: ${response.statusText}` : ""}`;
    let hint: string | null = null;
    try {
        const body: unknown = await response.json();
        if (isRecord(body) && typeof body.error === "string") error = body.error;
        if (isRecord(body) && typeof body.hint === "string") hint = body.hint;
    } catch {
        // Not JSON: a proxy's page. The status says enough.
    }
    return new ApiError(response.status, error, hint);
}

/** Ask for a JSON document and check that it has the described shape. */
export async function getDocument<S extends { readonly kind: string }>(shape: S, path: string, options: Options = {}): Promise<TypeOf<S>> {
    const body: unknown = await (await request(path, options)).json();
    const wrong = misfit(shape as unknown as Shape, body);
    if (wrong) throw new Error(`The server's answer is not as expected (${wrong})`);
    return body as never;
}

/** One line for people about anything that was thrown. */
export function errorText(error: unknown): string {
    if (error instanceof ApiError) return error.hint ? `${error.message} (${error.hint})` : error.message;
    if (error instanceof TypeError) return "The server cannot be reached";
    return error instanceof Error ? error.message : String(error);
}
