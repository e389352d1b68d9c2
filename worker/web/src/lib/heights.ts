// Heights of many rows of which few were measured: position of a row and row at a position
// in logarithmic time (a Fenwick tree over the deviations from the estimate).

export class Heights {
    private tree: Float64Array;
    private known: Float32Array;
    private n = 0;

    /** `estimate` is the height in pixels of a row that nobody measured yet. */
    constructor(private readonly estimate: number) {
        this.tree = new Float64Array(1025);
        this.known = new Float32Array(1024);
    }

    get count(): number {
        return this.n;
    }

    get total(): number {
        return this.top(this.n);
    }

    /** Rows are added at the end or, when `count` shrinks, all forgotten. */
    resize(count: number): void {
        if (count < this.n) {
            this.known.fill(0);
            this.tree.fill(0);
        } else if (count > this.known.length) this.grow(count);
        this.n = count;
    }

    private grow(count: number): void {
        let size = this.known.length;
        while (size < count) size *= 2;
        const known = new Float32Array(size);
        known.set(this.known);
        this.known = known;
        this.tree = new Float64Array(size + 1);
        for (let i = 0; i < size; i++) if (known[i]) this.shift(i, known[i]! - this.estimate);
    }

    private shift(index: number, by: number): void {
        for (let i = index + 1; i < this.tree.length; i += i & -i) this.tree[i]! += by;
    }

    height(index: number): number {
        return this.known[index] || this.estimate;
    }

    /** Record a measured height; returns whether it differs from what was assumed. */
    set(index: number, height: number): boolean {
        if (index >= this.n || height <= 0) return false;
        const change = height - this.height(index);
        this.known[index] = height;
        if (Math.abs(change) < 0.5) return false;
        this.shift(index, change);
        return true;
    }

    /** Distance of the row's top edge from the top of the list. */
    top(index: number): number {
        let sum = index * this.estimate;
        for (let i = index; i > 0; i -= i & -i) sum += this.tree[i]!;
        return sum;
    }

    /** The row that covers the position `y`. */
    at(y: number): number {
        let low = 0, high = Math.max(0, this.n - 1);
        while (low < high) {
            const middle = (low + high + 1) >> 1;
            if (this.top(middle) <= y) low = middle;
            else high = middle - 1;
        }
        return low;
    }
}
