// Matrix, comparison, search, settings, connection: each opens, works and is accessible.
import test from "node:test";
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { assertAccessible, openBrowser, openPage, shots, URL_BASE } from "./page.mjs";

async function withPage(t, path) {
    const { context, close } = await openBrowser();
    t.after(close);
    return { context, ...(await openPage(context, path)) };
}

test("the matrix counts runs, and its cells lead to them", async (t) => {
    const { page, wrong } = await withPage(t, "matrix");
    const cells = page.locator(".matrix-table tbody .cell a");
    await cells.first().waitFor();
    await shots(page, "matrix");
    await assertAccessible(page, "matrix");
    await cells.first().click();
    await page.locator(".run-row:not(.head), .run-head").first().waitFor();
    await page.goBack();
    await page.getByLabel("Agent", { exact: true }).selectOption({ index: 1 });
    await page.waitForURL(/agent=/);
    assert.deepEqual(wrong, []);
});

test("two runs side by side", async (t) => {
    const { page, wrong } = await withPage(t, "runs?grade=passed");
    await page.locator(".row-link").first().click();
    await page.getByRole("link", { name: "Compare" }).last().click();
    let first = "";
    while (!(first = await page.getByLabel("First run").inputValue())) await page.waitForTimeout(50);
    assert.equal(await page.getByLabel("Second run").locator(`option[value="${first}"]`).count(), 0, "a run is not compared with itself");
    await page.getByLabel("Second run").selectOption({ index: 2 });
    await page.locator(".figures").waitFor();
    await shots(page, "compare-figures");
    await assertAccessible(page, "figures");
    await page.getByRole("button", { name: "Dialogs" }).click();
    await page.locator(".pair .entry").nth(1).waitFor();
    await shots(page, "compare-dialogs");
    await assertAccessible(page, "dialogs");
    await page.getByRole("button", { name: "Patches" }).click();
    await page.locator(".split-side").nth(1).waitFor();
    await assertAccessible(page, "patches");
    await page.reload();
    await page.locator(".split-side").nth(1).waitFor();
    assert.deepEqual(wrong, []);
});

test("search over all dialogs leads to the entry", async (t) => {
    const { page, wrong } = await withPage(t, "search");
    await page.getByLabel("Search the dialogs of all runs").fill("test");
    await page.keyboard.press("Enter");
    await page.locator(".hit").first().waitFor();
    await page.waitForFunction(() => /hits?; \d+ of \d+ runs? read/.test(document.querySelector(".search-line")?.textContent ?? ""));
    await shots(page, "search");
    await assertAccessible(page, "search");
    await page.locator(".hit").first().click();
    await page.locator(".entry.marked").waitFor();
    assert.deepEqual(wrong, []);
});

test("settings are kept, and dark is dark", async (t) => {
    const { page, wrong } = await withPage(t, "settings");
    await page.getByRole("button", { name: "Dark", exact: true }).click();
    await page.reload();
    await page.getByRole("button", { name: "Dark", exact: true }).waitFor();
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    assert.match(light, /rgb\((\d|[1-4]\d), /, "the ground is dark");
    await page.getByRole("button", { name: "As the system" }).click();
    await shots(page, "settings");
    await assertAccessible(page, "settings");
    assert.deepEqual(wrong, []);
});

test("the connection page agrees with the server", async (t) => {
    const { page, wrong } = await withPage(t, "connection");
    await page.getByRole("cell", { name: "launches" }).waitFor();
    await page.waitForFunction(() => document.querySelectorAll(".plain-table td code").length >= 8);
    assert.equal(await page.getByText("differs").count(), 0, "page and server see the same address");
    await shots(page, "connection");
    await assertAccessible(page, "connection");
    assert.deepEqual(wrong, []);
});

test("an unknown address says so", async (t) => {
    const { page } = await withPage(t, "nowhere");
    await page.getByRole("heading", { name: "There is nothing at this address" }).waitFor();
    await page.goto(new URL("runs/no-such-run", page.url()).href);
    await page.getByRole("heading", { name: "Run not found" }).waitFor();
    await assertAccessible(page, "run not found");
});

test("a link on another site's page starts nothing", async (t) => {
    const other = createServer((request, answer) => {
        answer.setHeader("Content-Type", "text/html");
        answer.end(`<a href="${new URL(`api${request.url}`, URL_BASE).href}">go</a>`);
    });
    await new Promise((done) => other.listen(0, "127.0.0.1", done));
    const { context, close } = await openBrowser();
    t.after(async () => {
        await close();
        other.close();
        other.closeAllConnections();
    });
    for (const [path, status] of [["/launch/doctor", 403], ["/health", 200]]) {
        const page = await context.newPage();
        await page.goto(`http://127.0.0.1:${other.address().port}${path}`);
        const answer = page.waitForResponse((r) => r.url().includes("/api/"));
        await page.getByRole("link").click();
        assert.equal((await answer).status(), status, path);
    }
});
