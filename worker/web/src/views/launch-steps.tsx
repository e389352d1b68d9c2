// The wizard's steps for agent, model, mode and options.

import type { ComponentChildren } from "preact";
import { lookup } from "../lib/lookup";
import { Badge, Blank, Notice } from "../parts/basics";
import * as wizard from "../stores/wizard";

interface CardProps { name: string; group: string; checked: boolean; onChoose: () => void; children?: ComponentChildren; note?: ComponentChildren }

/** A choice as a card; radio buttons give it arrow keys and a name. */
function Card({ name, group, checked, onChoose, children, note }: CardProps) {
    return (
        <label class={`card ${checked ? "chosen" : ""}`}>
            <input type="radio" name={group} checked={checked} onChange={onChoose} />
            <span class="card-text"><span class="card-name">{name}</span>{children && <span class="dim">{children}</span>}{note}</span>
        </label>
    );
}

const AGENT_NAMES: Record<string, readonly [string, string]> = {
    "claude-code": ["Claude Code", "Anthropic"],
    codex: ["Codex", "OpenAI"],
    opencode: ["OpenCode", "open source"],
    reference: ["Reference", "applies the reference patch; needs no model"],
    dummy: ["Dummy", "does nothing; for trying out"],
};

export function AgentStep() {
    if (wizard.agents.value.length === 0) return <Blank title="No agents found" />;
    return (
        <div class="cards" role="radiogroup" aria-label="Agent">
            {wizard.agents.value.map((id) => {
                const [name, vendor] = lookup(AGENT_NAMES, id) ?? [id, "Unknown"];
                return <Card key={id} group="agent" name={name} checked={wizard.agent.value === id} onChoose={() => (wizard.agent.value = id)}>{vendor}</Card>;
            })}
        </div>
    );
}

const VENDORS: readonly (readonly [string, string])[] = [["claude-", "Anthropic"], ["gpt-", "OpenAI"], ["gemini-", "Google"]];

function vendorOf(model: string): readonly [string, string] {
    return VENDORS.find(([prefix]) => model.startsWith(prefix)) ?? ["", "Other"];
}

/** claude-opus-4-5 reads "Opus 4-5". */
function modelName(model: string): string {
    const [prefix] = vendorOf(model);
    const rest = prefix === "claude-" ? model.slice(prefix.length) : model;
    const [family = "", ...tail] = rest.split("-");
    const word = prefix === "gpt-" ? family.toUpperCase() : family.charAt(0).toUpperCase() + family.slice(1);
    return tail.length ? `${word} ${tail.join("-")}` : word;
}

function MissingKeys({ model }: { model: string }) {
    const missing = wizard.missingKeys(model);
    return missing.length ? <Badge tone="warn">Key missing: {missing.join(", ")}</Badge> : null;
}

export function ModelStep() {
    if (wizard.isReference.value) return <Blank title="No Model Needed">The reference agent applies the reference patch.</Blank>;
    if (wizard.models.value.length === 0) return <Blank title="No models found" />;
    const groups = new Map<string, string[]>();
    for (const model of wizard.models.value) {
        const vendor = vendorOf(model)[1];
        groups.set(vendor, [...(groups.get(vendor) ?? []), model]);
    }
    const missing = wizard.missingKeys(wizard.model.value);
    return (
        <div class="model-groups">
            {missing.length > 0 && <Notice tone="warn">{wizard.model.value} needs {missing.join(", ")}, which the server's .env lacks. The launch will be refused by the CLI.</Notice>}
            {[...groups].map(([vendor, models], i) => (
                <details key={vendor} open={i === 0 || models.includes(wizard.model.value)}>
                    <summary>{vendor} <span class="tab-badge">{models.length}</span></summary>
                    <div class="cards" role="radiogroup" aria-label={vendor}>
                        {models.map((model) => (
                            <Card key={model} group="model" name={modelName(model)} checked={wizard.model.value === model} onChoose={() => (wizard.model.value = model)}
                                note={<MissingKeys model={model} />}>{model}</Card>
                        ))}
                    </div>
                </details>
            ))}
        </div>
    );
}

/** Where agent and task stand in each mode. */
function Diagram({ two }: { two: boolean }) {
    return (
        <svg class="diagram" viewBox="0 0 220 56" aria-hidden="true">
            <rect x="1" y="1" width={two ? 92 : 218} height="54" rx="6" /><rect x="11" y="17" width="72" height="22" rx="4" class="inner" />
            <text x="47" y="32">agent</text>
            {two && <rect x="127" y="1" width="92" height="54" rx="6" />}
            <rect x="137" y="17" width="72" height="22" rx="4" class="inner" /><text x="173" y="32">task</text>
            <path d="M86 28h48" />
        </svg>
    );
}

export function ModeStep() {
    const set = (mode: "sandbox" | "sidecar") => () => (wizard.mode.value = mode);
    return (
        <div class="cards two" role="radiogroup" aria-label="Mode">
            <Card group="mode" name="Sandbox" checked={wizard.mode.value === "sandbox"} onChoose={set("sandbox")} note={<Diagram two={false} />}>Agent and task in one container. The default; supports plugins.</Card>
            <Card group="mode" name="Sidecar" checked={wizard.mode.value === "sidecar"} onChoose={set("sidecar")} note={<Diagram two />}>Agent and task in two containers. Experimental; no plugins.</Card>
        </div>
    );
}

const DIFFICULTIES = [
    ["FULL_ASSISTANCE", "all tools and all tests"],
    ["NO_INTENT_TEST", "without the intent test"],
    ["NO_FUTURE_TEST", "without future tests (default)"],
    ["BUILD_ONLY", "may build, nothing else"],
    ["NO_BUILD", "may not even build"],
] as const;

export function OptionsStep() {
    const plugins = wizard.config.value?.plugins ?? [];
    const bad = !(wizard.minutes.value >= 1 && wizard.minutes.value <= 10_080);
    const toggle = (name: string) => {
        const next = new Set(wizard.plugins.value);
        if (!next.delete(name)) next.add(name);
        wizard.plugins.value = next;
    };
    return (
        <div class="options">
            <fieldset>
                <legend>Difficulty</legend>
                {DIFFICULTIES.map(([name, what], level) => (
                    <label key={name} class="option"><input type="radio" name="difficulty" checked={wizard.difficulty.value === level} onChange={() => (wizard.difficulty.value = level)} />{level} <code>{name}</code> <span class="dim">{what}</span></label>
                ))}
            </fieldset>
            <fieldset>
                <legend>Time limit</legend>
                <label class="option">Minutes <input type="number" min={1} max={10080} step={1} value={wizard.timeout.value} aria-invalid={bad} onInput={(event) => (wizard.timeout.value = event.currentTarget.value)} /></label>
                {bad && <p class="field-error" role="alert">Whole minutes from 1 to 10080</p>}
            </fieldset>
            <fieldset>
                <legend>Network of the agent</legend>
                <label class="option"><input type="radio" name="egress" checked={wizard.egress.value === "restricted"} onChange={() => (wizard.egress.value = "restricted")} />Restricted <span class="dim">model access only (default)</span></label>
                <label class="option"><input type="radio" name="egress" checked={wizard.egress.value === "open"} onChange={() => (wizard.egress.value = "open")} />Open <span class="dim">the whole network</span></label>
            </fieldset>
            {plugins.length > 0 && <fieldset disabled={wizard.mode.value !== "sandbox"}>
                <legend>Plugins {wizard.mode.value !== "sandbox" && <span class="dim">(sandbox mode only)</span>}</legend>
                {plugins.map((plugin) => (
                    <label key={plugin.name} class="option"><input type="checkbox" checked={wizard.plugins.value.has(plugin.name)} onChange={() => toggle(plugin.name)} />{plugin.name} <span class="dim">{plugin.hook}{plugin.llm ? ", uses a model" : ""}</span></label>
                ))}
                {wizard.pluginProblem.value && <p class="field-error" role="alert">{wizard.pluginProblem.value}</p>}
            </fieldset>}
        </div>
    );
}
