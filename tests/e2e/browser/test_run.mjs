// A finished run: dialog, changes, files, grade, logs, and links to places in it.
import test from "node:test";
import assert from "node:assert/strict";
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { assertAccessible, NARROW, openBrowser, openPage, shots, URL_BASE } from "./page.mjs";

/** Opens the first graded run that has a dialog. */
async function openRun(context) {
    const { page, wrong } = await openPage(context, "runs?grade=passed");
    await page.locator(".row-link").first().click();
    await page.locator(".entry").first().waitFor();
    return { page, wrong };
}

test("a finished run", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openRun(context);
    await page.locator(".diff-line").first().waitFor();
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.locator(".log-line").first().waitFor();
    await shots(page, "run");
    await assertAccessible(page, "run");

    await page.getByRole("tab", { name: "Files" }).click();
    await page.locator(".file-row").first().waitFor();
    await assertAccessible(page, "files");
    await page.locator(".file-row").first().click();
    await page.locator(".diff-file").first().waitFor();
    await page.getByRole("tab", { name: "Grade" }).click();
    await page.locator(".grade-card").waitFor();
    await shots(page, "grade");
    await assertAccessible(page, "grade");
    assert.deepEqual(wrong, []);
});

test("a link leads to one entry of a dialog, and the keys move on", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page } = await openRun(context);
    const href = await page.locator(".entry.tool .entry-seq").first().getAttribute("href");
    const { page: other } = await openPage(context, href);
    const marked = other.locator(".entry.marked");
    await marked.waitFor();
    assert.ok((await marked.getAttribute("class")).includes("tool"));
    await other.keyboard.press("j");
    await other.waitForFunction((before) => new URL(location.href).searchParams.get("e") !== new URL(before, location.href).searchParams.get("e"), href);
});

test("search in the dialog", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page } = await openRun(context);
    await page.getByLabel("Search the dialog").fill("the");
    await page.waitForFunction(() => /^\d+\/[1-9]/.test(document.querySelector(".dialog-pane .search-count")?.textContent ?? ""));
    await page.getByLabel("Search the dialog").fill("no-such-text-in-there");
    await page.waitForFunction(() => document.querySelector(".dialog-pane .search-count")?.textContent === "0/0");
});

test("on a phone one part is shown at a time", async (t) => {
    const { context, close } = await openBrowser({ viewport: NARROW });
    t.after(close);
    const { page } = await openRun(context);
    assert.equal(await page.locator(".diff-line").count(), 0);
    await page.getByRole("tab", { name: "Changes" }).click();
    await page.locator(".diff-line").first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), NARROW.width, "nothing sticks out sideways");
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Runs", exact: true }).click();
    await page.locator(".run-row:not(.head)").first().waitFor();
});

/** A finished run of its own, beside the others: a copy with another ID, changed by `change(folder)`. */
function plantRun(id, change) {
    const results = join(process.env.SSEBENCH_CHECKOUT, "results");
    const from = dirname(join(results, readdirSync(results, { recursive: true }).find((name) => name.endsWith("/summary.json"))));
    const to = join(dirname(from), id), summary = join(to, "summary.json");
    cpSync(from, to, { recursive: true });
    writeFileSync(summary, JSON.stringify({ ...JSON.parse(readFileSync(summary, "utf8")), run_id: id }));
    mkdirSync(join(to, "archive"), { recursive: true });
    change(to);
}

test("what an agent wrote takes only its own place", async (t) => {
    const id = "00000000-0000-4000-8000-00000000bad1";
    const entry = (seq, more) => `${JSON.stringify({ seq, ts: "2026-01-01T00:00:00Z", ...more })}\n`;
    plantRun(id, (folder) => {
        writeFileSync(join(folder, "result.json"), JSON.stringify({ patch_result: { status: "__proto__" }, runtime_result: {} }));
        writeFileSync(join(folder, "final.patch"), `--- a/x\n+++ "b/${"a".repeat(300_000)}"\n@@ -1 +1 @@\n-x\n+y\n`);
        writeFileSync(join(folder, "archive/dialog.jsonl"), [
            entry(0, { type: "complete", status: "__proto__" }), entry(1, { type: "message", content: `${">".repeat(3_000)} deep` }),
            entry(2, { type: "message", content: "a_".repeat(30_000) }),
        ].join(""));
    });
    while (!(await (await fetch(new URL("api/containers", URL_BASE))).text()).includes(id)) await setTimeout(200);
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context, `runs/${id}`);
    await page.locator(".entry").getByText("__proto__").waitFor();
    await page.locator(".entry").getByText("> deep").waitFor({ state: "attached" });
    await page.getByText("@@ -1 +1 @@").waitFor();
    await page.goto(new URL(`runs/${id}/grade`, page.url().split("/runs/")[0] + "/").href);
    await page.getByRole("heading", { name: "Graded" }).waitFor();
    assert.deepEqual(await page.evaluate(() => Object.getOwnPropertyNames(Object.prototype).filter((name) => /^__.?$/.test(name))), []);
    await page.locator(".sidebar").getByRole("link", { name: /Settings/ }).click();
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    assert.deepEqual(wrong, []);
});

test("a pane that cannot be drawn leaves the others", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    // Only a patch's names are split at tabs.
    await context.addInitScript(() => {
        const { split } = String.prototype;
        String.prototype.split = function (by, ...more) {
            if (by === "\t") throw new Error("a fault of this test");
            return split.call(this, by, ...more);
        };
    });
    const { page } = await openRun(context);
    await page.getByText("This cannot be shown").waitFor();
    await page.getByText("a fault of this test").waitFor();
    assert.equal(await page.locator(".area.left .entry").count() > 0, true, "the dialog is there");
    await page.getByRole("tab", { name: "Grade" }).click();
    await page.locator(".grade-card").waitFor();
});
