// What lies over every view: the list of keys, and notes in the corner.

import { helpOpen, keyHelp } from "../lib/keys";
import { Button } from "../parts/basics";
import { Modal } from "../parts/modal";
import { dismiss, toasts } from "../stores/notifications";

function Keys({ keys }: { keys: string }) {
    return <span class="keys">{keys.split(" ").map((key, i) => <kbd key={i}>{key}</kbd>)}</span>;
}

export function KeyHelp() {
    if (!helpOpen.value) return null;
    const helps = keyHelp();
    const places = [...new Set(helps.map((help) => help.where))];
    return (
        <Modal title="Keyboard" onClose={() => (helpOpen.value = false)}>
            {places.map((where) => (
                <section key={where}>
                    <h3>{where}</h3>
                    <dl class="key-list">{helps.filter((help) => help.where === where).map((help) => <div key={help.keys}><dt><Keys keys={help.keys} /></dt><dd>{help.what}</dd></div>)}</dl>
                </section>
            ))}
            <p class="dim">Tabs: arrow keys. Dividers: arrow keys. Windows: Escape. Lists: Page Up, Page Down, Home, End.</p>
        </Modal>
    );
}

export function Toasts() {
    return (
        <div class="toasts" role="status" aria-live="polite">
            {toasts.value.map((toast) => (
                <div class="toast" key={toast.id}>
                    <div class="grow">{toast.href ? <a href={toast.href}>{toast.title}</a> : <strong>{toast.title}</strong>}{toast.text && <p class="dim">{toast.text}</p>}</div>
                    <Button kind="quiet" bare icon="close" label="Dismiss" onClick={() => dismiss(toast.id)} />
                </div>
            ))}
        </div>
    );
}
