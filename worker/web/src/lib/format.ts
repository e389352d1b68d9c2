// Numbers, times and sizes as people read them.

const UNITS: readonly [number, string][] = [
    [31_536_000, "year"], [2_592_000, "month"], [604_800, "week"], [86_400, "day"],
    [3_600, "hour"], [60, "minute"], [1, "second"],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "short" });
const decimal = new Intl.NumberFormat("en");

/** "5 min. ago"; an unreadable date gives an empty text. */
export function ago(date: string | number | null | undefined, now = Date.now()): string {
    const time = typeof date === "number" ? date : Date.parse(date ?? "");
    if (!Number.isFinite(time)) return "";
    const seconds = Math.round((now - time) / 1000);
    if (Math.abs(seconds) < 10) return "just now";
    const [size, unit] = UNITS.find(([s]) => Math.abs(seconds) >= s) ?? UNITS.at(-1)!;
    return relative.format(-Math.trunc(seconds / size), unit as Intl.RelativeTimeFormatUnit);
}

/** HH:MM:SS of an entry, local time. */
export function clock(date: string): string {
    const time = new Date(date);
    return Number.isNaN(time.getTime()) ? "" : time.toLocaleTimeString("en-GB", { hour12: false });
}

export function dateTime(date: string | null | undefined): string {
    const time = new Date(date ?? "");
    if (Number.isNaN(time.getTime())) return "";
    const two = (n: number) => `${n}`.padStart(2, "0");
    return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}`;
}

/** 4s, 3m 20s, 1h 05m */
export function duration(seconds: number | null | undefined): string {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
    if (seconds < 10) return `${Math.round(seconds * 10) / 10}s`;
    const s = Math.round(seconds);
    if (s < 60) return `${s}s`;
    const pad = (n: number) => `${n}`.padStart(2, "0");
    if (s < 3600) return `${Math.floor(s / 60)}m ${pad(s % 60)}s`;
    return `${Math.floor(s / 3600)}h ${pad(Math.floor((s % 3600) / 60))}m`;
}

export const integer = (n: number) => decimal.format(n);

/** 950, 12.3k, 4.1M */
export function short(n: number): string {
    if (Math.abs(n) < 1000) return `${n}`;
    const [size, unit] = Math.abs(n) < 999_950 ? [1e3, "k"] as const : [1e6, "M"] as const;
    const value = n / size;
    return `${value.toFixed(Math.abs(value) < 100 ? 1 : 0).replace(/\.0$/, "")}${unit}`;
}

export function dollars(n: number | null | undefined): string {
    if (n === null || n === undefined || !Number.isFinite(n)) return "";
    return n === 0 ? "$0" : n < 0.01 ? "<$0.01" : `$${n.toFixed(2)}`;
}

export function bytes(n: number): string {
    if (n < 1024) return `${n} B`;
    const units = ["KiB", "MiB", "GiB"];
    let value = n, unit = -1;
    while (value >= 1024 && unit < units.length - 1) {
        value /= 1024;
        unit++;
    }
    return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export const plural = (n: number, one: string, many = `${one}s`) => `${integer(n)} ${n === 1 ? one : many}`;
