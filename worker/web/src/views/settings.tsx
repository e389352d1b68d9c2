// What the reader can choose; everything applies at once, the key when it is saved.

import { useState } from "preact/hooks";
import { lookup } from "../lib/lookup";
import { Button, Notice } from "../parts/basics";
import { allowNotifications } from "../stores/notifications";
import { canSignOut, hasAssistant, hasTerminal, role, ROLE_TEXT, signOut } from "../stores/session";
import type { Settings } from "../stores/settings";
import { change, settings } from "../stores/settings";

type ChoiceName = "theme" | "terminalTheme" | "centerTabPosition" | "bottomTabPosition";

function Choice({ name, label, options }: { name: ChoiceName; label: string; options: readonly (readonly [string, string])[] }) {
    return (
        <div class="setting">
            <span class="setting-name" id={`s-${name}`}>{label}</span>
            <div class="segments" role="group" aria-labelledby={`s-${name}`}>
                {options.map(([value, text]) => (
                    <button type="button" key={value} class="segment" aria-pressed={settings.value[name] === value}
                        onClick={() => change({ [name]: value } as Partial<Settings>)}>{text}</button>
                ))}
            </div>
        </div>
    );
}

function Check({ name, label }: { name: "terminalCopyOnSelect" | "terminalScreenReader" | "wrapDiff" | "wrapLogs"; label: string }) {
    return (
        <label class="setting check-setting">
            <input type="checkbox" checked={settings.value[name]} onChange={(event) => change({ [name]: event.currentTarget.checked } as Partial<Settings>)} />{label}
        </label>
    );
}

function Notifications() {
    const [refused, setRefused] = useState(false);
    const set = async (on: boolean) => {
        const allowed = on && (await allowNotifications());
        setRefused(on && !allowed);
        change({ notifications: allowed });
    };
    return (
        <>
            <label class="setting check-setting">
                <input type="checkbox" checked={settings.value.notifications} onChange={(event) => void set(event.currentTarget.checked)} />
                Tell me when a run or launch ends while this page is in the background
            </label>
            {refused && <Notice tone="warn">The browser does not allow notifications for this page.</Notice>}
        </>
    );
}

function ApiKey() {
    const [text, setText] = useState(settings.value.anthropicApiKey ?? "");
    const [shown, setShown] = useState(false);
    const saved = (settings.value.anthropicApiKey ?? "") === text.trim();
    const save = (event: Event) => {
        event.preventDefault();
        change({ anthropicApiKey: text.trim() || null });
    };
    return (
        <form class="setting key-setting" onSubmit={save}>
            <label class="setting-name" for="api-key">Anthropic API key</label>
            <div class="key-row">
                <input id="api-key" type={(shown ? "text" : "password") as "password"} value={text} autocomplete="off" spellcheck={false} placeholder="sk-ant-…" onInput={(event) => setText(event.currentTarget.value)} />
                <Button label={shown ? "Hide" : "Show"} onClick={() => setShown(!shown)} />
                <Button type="submit" kind="primary" label={saved && text ? "Saved" : "Save"} disabled={saved} />
            </div>
            <p class="dim">Only needed for runs without a model of their own. It is kept unencrypted in this browser's local storage, where every page of this address can read it, and is sent to the assistant inside a run when a conversation starts.</p>
        </form>
    );
}

const SIDES = [["top", "Top"], ["bottom", "Bottom"], ["left", "Left"], ["right", "Right"]] as const;

export function SettingsView() {
    return (
        <div class="scroll">
            <header class="view-head"><h1>Settings</h1></header>
            <div class="settings">
                <section><h2>Appearance</h2>
                    <Choice name="theme" label="Colours" options={[["system", "As the system"], ["light", "Light"], ["dark", "Dark"]]} />
                    <Choice name="centerTabPosition" label="Tabs of the upper area" options={SIDES} />
                    <Choice name="bottomTabPosition" label="Tabs of the lower area" options={SIDES} />
                    <Check name="wrapDiff" label="Wrap long lines in changes" />
                    <Check name="wrapLogs" label="Wrap long lines in logs" />
                </section>
                {hasTerminal.value && <section><h2>Terminal</h2>
                    <Choice name="terminalTheme" label="Colours" options={[["gruvbox", "Gruvbox"], ["dracula", "Dracula"], ["solarized", "Solarized"]]} />
                    <div class="setting"><label class="setting-name" for="font-size">Font size</label>
                        <input id="font-size" type="number" min={8} max={24} value={settings.value.terminalFontSize}
                            onChange={(event) => { const n = Math.round(Number(event.currentTarget.value)); if (n >= 8 && n <= 24) change({ terminalFontSize: n }); }} /></div>
                    <Check name="terminalCopyOnSelect" label="Copy what is selected" />
                    <Check name="terminalScreenReader" label="Screen reader support" />
                </section>}
                <section><h2>Notifications</h2><Notifications /></section>
                {hasAssistant.value && <section><h2>Assistant</h2><ApiKey /></section>}
                {canSignOut.value && <section><h2>Access</h2><p class="setting">The access token is held by this tab.{role.value && ` It may ${lookup(ROLE_TEXT, role.value) ?? "do what the server allows"} (role ${role.value}).`} <Button label="Forget the token" onClick={signOut} /></p></section>}
            </div>
        </div>
    );
}
