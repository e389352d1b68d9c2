// Small pieces that every view uses: buttons, badges, states, copy.

import type { ButtonHTMLAttributes, ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { IconName } from "./icons";
import { Icon } from "./icons";

interface ButtonProps extends Omit<ButtonHTMLAttributes, "icon" | "label" | "type" | "disabled" | "class"> {
    icon?: IconName;
    label: string;
    /** Show the icon only; the label names the button. */
    bare?: boolean;
    kind?: "plain" | "primary" | "danger" | "quiet";
    pressed?: boolean;
    disabled?: boolean;
    class?: string;
    type?: "button" | "submit";
}

export function Button({ icon, label, bare, kind = "plain", pressed, type = "button", class: extra, ...rest }: ButtonProps) {
    return (
        <button {...rest} type={type} class={`button ${kind} ${bare ? "bare" : ""} ${extra ?? ""}`}
            aria-label={bare ? label : rest["aria-label"]} title={bare ? label : undefined} aria-pressed={pressed}>
            {icon && <Icon name={icon} />}
            {!bare && <span>{label}</span>}
        </button>
    );
}

export type Tone = "ok" | "bad" | "warn" | "info" | "plain";

export function Badge({ tone = "plain", children, title }: { tone?: Tone; children: ComponentChildren; title?: string | undefined }) {
    return <span class={`badge ${tone}`} title={title}>{children}</span>;
}

/** What stands in an empty pane: nothing yet, loading, or what went wrong. */
export function Blank({ title, children, busy, tone, top }: {
    title: string; children?: ComponentChildren; busy?: boolean; tone?: Tone;
    /** The whole view is blank: the title is its heading. */
    top?: boolean;
}) {
    return (
        <div class={`blank ${tone ?? ""}`} role={tone === "bad" ? "alert" : "status"}>
            {busy && <span class="spinner" aria-hidden="true" />}
            {top ? <h1 class="blank-title">{title}</h1> : <p class="blank-title">{title}</p>}
            {children && <div class="blank-text">{children}</div>}
        </div>
    );
}

export function Notice({ tone, children, action }: { tone: Tone; children: ComponentChildren; action?: ComponentChildren }) {
    return (
        <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
            <Icon name={tone === "ok" ? "check" : tone === "info" ? "info" : "alert"} />
            <div class="notice-text">{children}</div>
            {action}
        </div>
    );
}

export async function copyText(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        return copyBySelection(text);
    }
}

/** Without a secure context there is no clipboard API; a selected field still copies. */
function copyBySelection(text: string): boolean {
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "off-screen";
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
}

export function CopyButton({ text, label = "Copy", icon = "copy", bare = true }: { text: () => string; label?: string; icon?: IconName; bare?: boolean }) {
    const [done, setDone] = useState(false);
    const timer = useRef(0);
    useEffect(() => () => clearTimeout(timer.current), []);
    const copy = async () => {
        setDone(await copyText(text()));
        timer.current = window.setTimeout(() => setDone(false), 1500);
    };
    return <Button kind="quiet" bare={bare} icon={done ? "check" : icon} label={done ? "Copied" : label} onClick={copy} />;
}

/** Hand `text` to the browser as a file. */
export function saveText(name: string, text: string, type = "text/plain"): void {
    saveBlob(name, new Blob([text], { type: `${type};charset=utf-8` }));
}

export function saveBlob(name: string, blob: Blob): void {
    const url = URL.createObjectURL(blob);
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

interface SearchProps {
    value: string;
    onValue: (value: string) => void;
    label: string;
    placeholder?: string;
    onKeyDown?: (event: KeyboardEvent) => void;
    children?: ComponentChildren;
}

/** A search field; "/" goes to the one that is marked `data-search`. */
export function SearchField({ value, onValue, label, placeholder, onKeyDown, children }: SearchProps) {
    return (
        <div class="search-field">
            <Icon name="search" />
            <input type="search" value={value} aria-label={label} placeholder={placeholder ?? label} data-search
                spellcheck={false} autocomplete="off" onKeyDown={onKeyDown}
                onInput={(event) => onValue(event.currentTarget.value)} />
            {children}
        </div>
    );
}

interface Tab { id: string; label: string; badge?: ComponentChildren; href?: string }

/** A tab bar; arrow keys move along it. */
export function Tabs({ tabs, current, onSelect, label, children }: {
    tabs: readonly Tab[]; current: string; onSelect: (id: string) => void; label: string; children?: ComponentChildren;
}) {
    const bar = useRef<HTMLDivElement>(null);
    // On a narrow screen the tabs scroll sideways: the current one is in view.
    useEffect(() => {
        const list = bar.current, tab = list?.querySelector<HTMLElement>('[aria-selected="true"]');
        if (list && tab) list.scrollLeft = tab.offsetLeft - list.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
    }, [current, tabs.length]);
    const move = (event: KeyboardEvent) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (!step) return;
        event.preventDefault();
        const at = tabs.findIndex((tab) => tab.id === current);
        const next = tabs[(at + step + tabs.length) % tabs.length]!;
        onSelect(next.id);
        queueMicrotask(() => bar.current?.querySelector<HTMLElement>('[aria-selected="true"]')?.focus());
    };
    return (
        <div class="tab-bar">
            <div class="tabs" ref={bar} role="tablist" aria-label={label} onKeyDown={move}>
                {tabs.map((tab) => (
                    <button type="button" key={tab.id} role="tab" class="tab" aria-selected={tab.id === current}
                        tabIndex={tab.id === current ? 0 : -1} onClick={() => onSelect(tab.id)}>
                        {tab.label}{tab.badge !== undefined && <span class="tab-badge">{tab.badge}</span>}
                    </button>
                ))}
            </div>
            {children && <div class="tab-tools">{children}</div>}
        </div>
    );
}
