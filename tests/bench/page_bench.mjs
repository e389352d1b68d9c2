// What Chromium measures of the page, for bench_page.py: `vitals`, `dialog HREF`, `logs HREF
// SECONDS`. Prints one JSON object a line.
import { readFileSync, readdirSync } from "node:fs";
import { openBrowser, openPage } from "../e2e/browser/page.mjs";

const [what, href = "", seconds = "0"] = process.argv.slice(2);
const say = (figures) => console.log(JSON.stringify(figures));
const round = (n, digits = 0) => Number(n.toFixed(digits));

/** Watches for long tasks, shifts and the largest paint from the first moment on. */
const WATCH = () => {
    const seen = (globalThis.seen = { tasks: [], shift: 0, paint: 0 });
    const watch = (type, take) => new PerformanceObserver((list) => list.getEntries().forEach(take)).observe({ type, buffered: true });
    watch("longtask", (entry) => seen.tasks.push(Math.round(entry.duration)));
    watch("layout-shift", (entry) => entry.hadRecentInput || (seen.shift += entry.value));
    watch("largest-contentful-paint", (entry) => (seen.paint = entry.startTime));
};

/** Proportional memory of the largest renderer below this process, in MB. */
function rendererMB() {
    const parents = new Map(), renderers = [];
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name)))
        try {
            parents.set(Number(pid), Number(/\) \w (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))[1]));
            if (readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer")) renderers.push(Number(pid));
        } catch {
            // It ended meanwhile.
        }
    const isOurs = (pid) => pid === process.pid || (parents.has(pid) && isOurs(parents.get(pid)));
    const sizes = renderers.filter(isOurs).map((pid) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))[1]) / 1024);
    return round(Math.max(0, ...sizes));
}

async function heapMB(page) {
    const session = await page.context().newCDPSession(page);
    await session.send("HeapProfiler.collectGarbage");
    const { usedSize } = await session.send("Runtime.getHeapUsage");
    await session.detach();
    return round(usedSize / 1e6);
}

/** Intervals between frames while the list scrolls by a page at a time, and to its ends. */
const SCROLL = async (steps) => {
    const list = document.querySelector(".entries");
    const gaps = [];
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    let before = await frame();
    for (let i = 0; i < steps; i++) {
        list.scrollTop = i % 40 === 39 ? (list.scrollHeight * ((i * 7) % steps)) / steps : list.scrollTop + 400;
        const now = await frame();
        gaps.push(now - before);
        before = now;
    }
    gaps.sort((a, b) => a - b);
    return { p50: gaps[gaps.length >> 1], p95: gaps[Math.floor(gaps.length * 0.95)], worst: gaps.at(-1) };
};

async function vitals(context) {
    for (const [name, path, ready] of [["runs", "runs", ".row-link"], ["matrix", "matrix", ".matrix-table"], ["run", href, ".diff-line"]]) {
        const { page } = await openPage(context, path);
        await page.locator(ready).first().waitFor();
        await page.waitForTimeout(1500);
        const seen = await page.evaluate(() => globalThis.seen);
        const bytes = await page.evaluate(() => performance.getEntriesByType("resource").reduce((n, r) => n + r.transferSize, 0));
        say({ view: name, largestPaintMs: round(seen.paint), layoutShift: round(seen.shift, 4), longestTaskMs: Math.max(0, ...seen.tasks), transferredKiB: round(bytes / 1024) });
        await page.close();
    }
}

async function dialog(context) {
    const start = performance.now();
    const { page } = await openPage(context, href);
    await page.locator(".entry").first().waitFor({ timeout: 120_000 });
    const first = performance.now() - start;
    const inPage = await page.evaluate(() => performance.now());
    await page.waitForFunction(() => performance.getEntriesByType("resource").some((r) => r.name.endsWith("/agent/dialog") && r.responseEnd > 0), null, { timeout: 300_000 });
    await page.getByText("Session complete").waitFor();
    const all = performance.now() - start;
    const tasks = await page.evaluate(() => globalThis.seen.tasks);
    say({ firstScreenMs: round(Math.min(first, inPage)), wholeMs: round(all), longTasks: tasks.length, longestTaskMs: Math.max(0, ...tasks), heapMB: await heapMB(page), rendererMB: rendererMB() });
    await page.evaluate(() => (globalThis.seen.tasks.length = 0));
    const gaps = await page.evaluate(SCROLL, 400);
    say({ scrollFrameMs: { p50: round(gaps.p50, 1), p95: round(gaps.p95, 1), worst: round(gaps.worst, 1) }, longestTaskMs: Math.max(0, ...(await page.evaluate(() => globalThis.seen.tasks))), rowsInPage: await page.locator(".entry").count() });
}

/**
 * The main thread's tasks of the next seconds by the CPU time they took: on a busy machine the
 * clock mostly shows who else had the processor.
 */
async function taskTimes(page, ms) {
    const session = await page.context().newCDPSession(page);
    const mains = new Set(), tasks = [];
    session.on("Tracing.dataCollected", ({ value }) => {
        for (const event of value) {
            if (event.ph === "M" && event.name === "thread_name" && event.args.name === "CrRendererMain") mains.add(`${event.pid}/${event.tid}`);
            if (event.name.endsWith("RunTask") && event.tdur > 0) tasks.push({ thread: `${event.pid}/${event.tid}`, cpu: event.tdur / 1000, wall: event.dur / 1000 });
        }
    });
    await session.send("Tracing.start", { categories: "disabled-by-default-devtools.timeline,__metadata", transferMode: "ReportEvents" });
    await page.waitForTimeout(ms);
    const done = new Promise((resolve) => session.once("Tracing.tracingComplete", resolve));
    await session.send("Tracing.end");
    await done;
    await session.detach();
    const ours = tasks.filter((task) => mains.has(task.thread));
    return { traced: ours.length, cpuLongestMs: round(Math.max(0, ...ours.map((t) => t.cpu)), 1), cpuOver50: ours.filter((t) => t.cpu > 50).length, clockOver50: ours.filter((t) => t.wall > 50).length };
}

async function logs(context) {
    const { page } = await openPage(context, href);
    await page.bringToFront();
    await page.locator(".log-line").first().waitFor({ timeout: 60_000 });
    const end = performance.now() + Number(seconds) * 1000;
    let most = 0;
    while (performance.now() < end) {
        await page.waitForTimeout(Math.min(15_000, end - performance.now() + 10));
        most = Math.max(most, rendererMB());
    }
    const tasks = await page.evaluate(() => globalThis.seen.tasks);
    const traced = await taskTimes(page, Math.min(30_000, Number(seconds) * 1000));
    const lines = await page.locator(".logs .pane-tools .dim").first().textContent();
    say({ lines, rendererMostMB: most, heapMB: await heapMB(page), byTheClock: { over50: tasks.length, longestMs: Math.max(0, ...tasks) }, traced });
}

const { context, close } = await openBrowser();
try {
    await context.addInitScript(WATCH);
    await { vitals, dialog, logs }[what](context);
} finally {
    await close();
}
