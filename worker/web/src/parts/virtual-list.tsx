// A list of any length of which only the rows in view exist. Rows may have any height; the
// place that is being read stays put while rows above it are measured or added.

import type { AriaRole, ComponentChildren } from "preact";
import { Component, createRef } from "preact";
import { Heights } from "../lib/heights";

/** Browsers stop at some 17 to 33 million pixels; a longer list gets a scaled scroll bar. */
const MAX_PIXELS = 8_000_000;
/** Pixels rendered above and below what is seen. */
const MARGIN = 400;
/** So near to the end counts as being there. */
const END_SLACK = 40;

export interface ListControl {
    /** Bring a row into view. */
    show(index: number, where?: "start" | "nearest"): void;
    toEnd(): void;
    /** The first row in view. */
    first(): number;
    element(): HTMLElement | null;
}

interface Props {
    count: number;
    /** Usual height of a row in pixels. */
    estimate: number;
    render: (index: number) => ComponentChildren;
    keyOf?: (index: number) => string | number;
    /** A change of this value forgets all heights (other data, other width of text). */
    epoch?: string | number;
    /** Stay at the end while rows are added. */
    follow?: boolean;
    /** The reader left the end, or came back to it. */
    onFollow?: ((follow: boolean) => void) | undefined;
    onRange?: (first: number, last: number) => void;
    control?: (control: ListControl) => void;
    className?: string;
    label?: string;
    role?: AriaRole;
    rowRole?: AriaRole;
    head?: ComponentChildren;
    foot?: ComponentChildren;
    onKeyDown?: (event: KeyboardEvent) => void;
}

export class VirtualList extends Component<Props, { beat: number }> {
    private readonly scroller = createRef<HTMLDivElement>();
    private heights = new Heights(this.props.estimate);
    private top = 0;
    private physicalTop = 0;
    private view = 600;
    private readonly rows = new Map<Element, number>();
    private readonly measurer = new ResizeObserver((entries) => this.measured(entries));
    private readonly frame = new ResizeObserver(() => this.resized());
    private settle = 0;
    private pendingShow: { index: number; where: "start" | "nearest" } | null = null;
    private range = "";

    override componentDidMount(): void {
        const element = this.scroller.current!;
        this.view = element.clientHeight;
        element.style.setProperty("--list-width", `${element.clientWidth}px`);
        this.frame.observe(element);
        document.addEventListener("selectionchange", this.yieldToSelection);
        this.props.control?.({
            show: (index, where = "start") => this.show(index, where),
            toEnd: () => this.toEnd(),
            first: () => this.heights.at(this.top),
            element: () => this.scroller.current,
        });
        this.afterRender();
        this.beat();
    }

    override componentWillUnmount(): void {
        this.measurer.disconnect();
        this.frame.disconnect();
        clearTimeout(this.settle);
        document.removeEventListener("selectionchange", this.yieldToSelection);
    }

    override componentDidUpdate(): void {
        this.afterRender();
    }

    override componentWillReceiveProps(next: Props): void {
        if (next.epoch === this.props.epoch && next.estimate === this.props.estimate) return;
        this.heights = new Heights(next.estimate);
        this.heights.resize(next.count);
        if (next.epoch !== this.props.epoch) this.place(0);
    }

    private beat(): void {
        this.setState(({ beat }) => ({ beat: (beat ?? 0) + 1 }));
    }

    private get physical(): number {
        return Math.min(this.heights.total, MAX_PIXELS);
    }

    private get scaled(): boolean {
        return this.heights.total > MAX_PIXELS;
    }

    private get maxTop(): number {
        return Math.max(0, this.heights.total - this.view);
    }

    /** Scroll so that the list's pixel `top` is at the upper edge. */
    private place(top: number): void {
        const element = this.scroller.current;
        this.top = Math.max(0, Math.min(top, this.maxTop));
        if (!element) return;
        this.stretch();
        const target = this.scaled && this.maxTop > 0
            ? (this.top / this.maxTop) * (this.physical - this.view) : this.top;
        element.scrollTop = target;
        this.physicalTop = element.scrollTop;
        if (!this.scaled) this.top = this.physicalTop;
    }

    /** The height is written here only: rendering it too would lose changes made in between. */
    private stretch(): void {
        const spacer = this.scroller.current?.querySelector<HTMLElement>(":scope > .spacer");
        if (spacer) spacer.style.height = `${this.physical}px`;
    }

    private readonly onScroll = (): void => {
        const element = this.scroller.current!;
        const now = element.scrollTop;
        const moved = now - this.physicalTop;
        if (moved === 0) return;
        this.physicalTop = now;
        this.top = this.scaled ? this.scaledTop(now, moved) : now;
        this.props.onFollow?.(this.maxTop - this.top < END_SLACK);
        this.beat();
        this.settleLater();
    };

    /** A short move scrolls by pixels, a long one (the bar was dragged) by proportion. */
    private scaledTop(now: number, moved: number): number {
        const end = this.physical - this.view;
        if (now <= 0) return 0;
        if (now >= end - 1) return this.maxTop;
        if (Math.abs(moved) > this.view * 1.5) return (now / end) * this.maxTop;
        return Math.max(0, Math.min(this.top + moved, this.maxTop));
    }

    /** Short moves let the scaled bar drift from the truth: put it right when at rest. */
    private settleLater(): void {
        if (!this.scaled) return;
        clearTimeout(this.settle);
        this.settle = window.setTimeout(() => {
            this.place(this.top);
            this.beat();
        }, 250);
    }

    private readonly yieldToSelection = (): void => {
        const selection = document.getSelection();
        if (!this.props.follow || !selection || selection.isCollapsed || !selection.anchorNode) return;
        if (this.scroller.current?.contains(selection.anchorNode)) this.props.onFollow?.(false);
    };

    private resized(): void {
        const element = this.scroller.current;
        if (!element || element.clientHeight === 0) return;
        this.view = element.clientHeight;
        element.style.setProperty("--list-width", `${element.clientWidth}px`);
        this.physicalTop = element.scrollTop;
        if (this.props.follow) this.place(this.maxTop);
        this.beat();
    }

    private measured(entries: ResizeObserverEntry[]): void {
        const anchor = this.heights.at(this.top);
        const offset = this.top - this.heights.top(anchor);
        let changed = false;
        for (const entry of entries) {
            const index = this.rows.get(entry.target);
            const height = entry.borderBoxSize[0]?.blockSize ?? 0;
            if (index !== undefined && this.heights.set(index, height)) changed = true;
        }
        if (!changed) return;
        if (this.pendingShow) this.show(this.pendingShow.index, this.pendingShow.where);
        else if (this.props.follow) this.place(this.maxTop);
        else {
            const top = this.heights.top(anchor) + offset;
            if (Math.abs(top - this.top) > 0.5) this.place(top);
        }
        this.beat();
    }

    /** Bring a row into view; again for a moment, as rows on the way get their real heights. */
    private show(index: number, where: "start" | "nearest"): void {
        this.heights.resize(this.props.count);
        const top = this.heights.top(index), bottom = top + this.heights.height(index);
        if (where === "start") this.place(top - 4);
        else if (top < this.top) this.place(top);
        else if (bottom > this.top + this.view) this.place(Math.min(top, bottom - this.view));
        if (!this.pendingShow) window.setTimeout(() => (this.pendingShow = null), 250);
        this.pendingShow = { index, where };
        this.beat();
    }

    private toEnd(): void {
        this.place(this.maxTop);
        this.props.onFollow?.(true);
        this.beat();
    }

    private afterRender(): void {
        this.stretch();
        const seen = new Set<Element>();
        for (const element of this.scroller.current!.querySelectorAll(":scope > .spacer > .rows > [data-row]")) {
            seen.add(element);
            if (!this.rows.has(element)) this.measurer.observe(element);
            this.rows.set(element, Number((element as HTMLElement).dataset.row));
        }
        for (const element of this.rows.keys())
            if (!seen.has(element)) {
                this.measurer.unobserve(element);
                this.rows.delete(element);
            }
        if (this.props.follow && this.maxTop - this.top > 1) {
            this.place(this.maxTop);
            this.beat();
        }
    }

    private reportRange(first: number, last: number): void {
        const range = `${first}-${last}-${this.props.count}`;
        if (range === this.range) return;
        this.range = range;
        queueMicrotask(() => this.props.onRange?.(first, last));
    }

    override render(props: Props) {
        const { heights } = this;
        heights.resize(props.count);
        const first = props.count ? heights.at(Math.max(0, this.top - MARGIN)) : 0;
        const last = props.count ? heights.at(this.top + this.view + MARGIN) : -1;
        this.reportRange(first, last);
        const rows = [];
        for (let index = first; index <= last; index++)
            rows.push(
                <div key={props.keyOf?.(index) ?? index} data-row={index} role={props.rowRole}
                    aria-rowindex={props.rowRole === "row" ? index + 2 : undefined}
                    aria-setsize={props.rowRole === "listitem" ? props.count : undefined}
                    aria-posinset={props.rowRole === "listitem" ? index + 1 : undefined}>
                    {props.render(index)}
                </div>);
        const shift = this.physicalTop + heights.top(first) - this.top;
        return (
            <div class={`virtual ${props.className ?? ""}`} ref={this.scroller} onScroll={this.onScroll} tabIndex={0}
                role={props.role ?? "region"} aria-label={props.label} onKeyDown={props.onKeyDown}>
                {props.head}
                <div class="spacer" role="presentation">
                    <div class="rows" style={{ transform: `translateY(${shift}px)` }} role="presentation">{rows}</div>
                </div>
                {props.foot}
            </div>
        );
    }
}
