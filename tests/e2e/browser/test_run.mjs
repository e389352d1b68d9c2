// A finished run: dialog, changes, files, grade, logs, and links to places in it.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, NARROW, openBrowser, openPage, shots } from "./page.mjs";

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
