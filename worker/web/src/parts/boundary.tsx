// What cannot be drawn takes only its own place from the page.

import type { ComponentChildren } from "preact";
import { Component } from "preact";
import { errorText } from "../lib/api";
import { Blank, Button } from "./basics";

interface Props { children: ComponentChildren }
interface State { error: unknown }

/** Give it a key that changes with what it shows: a new one begins without the error. */
export class Boundary extends Component<Props, State> {
    override state: State = { error: null };

    static override getDerivedStateFromError(error: unknown): State {
        return { error: error ?? "unknown" };
    }

    override render({ children }: Props, { error }: State) {
        if (error === null) return children;
        return (
            <Blank tone="bad" title="This cannot be shown">
                <p>{errorText(error)}</p>
                <Button label="Try again" onClick={() => this.setState({ error: null })} />
            </Blank>
        );
    }
}
