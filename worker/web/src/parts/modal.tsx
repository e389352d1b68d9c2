// Modal dialogs on the browser's own <dialog>: it traps and returns the focus and closes on Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Button } from "./basics";

interface Props {
    title: string;
    onClose: () => void;
    children: ComponentChildren;
    foot?: ComponentChildren;
    /** False while something runs that must not be left. */
    closable?: boolean;
    wide?: boolean;
}

export function Modal({ title, onClose, children, foot, closable = true, wide }: Props) {
    const dialog = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        const before = document.activeElement as HTMLElement | null;
        dialog.current?.showModal();
        return () => before?.focus?.();
    }, []);
    const cancel = (event: Event) => {
        event.preventDefault();
        if (closable) onClose();
    };
    const outside = (event: MouseEvent) => {
        if (closable && event.target === dialog.current) onClose();
    };
    return (
        <dialog class={`modal ${wide ? "wide" : ""}`} ref={dialog} onCancel={cancel} onMouseDown={outside} aria-label={title}>
            <div class="modal-body">
                <header class="modal-head">
                    <h2>{title}</h2>
                    {closable && <Button kind="quiet" bare icon="close" label="Close" onClick={onClose} />}
                </header>
                <div class="modal-content">{children}</div>
                {foot && <footer class="modal-foot">{foot}</footer>}
            </div>
        </dialog>
    );
}
