// needs: live
// A running run: entries arrive, the list follows until the reader scrolls up, a lost
// connection comes back without loss or repetition, stopping asks first.
import test from "node:test";
import assert from "node:assert/strict";
import { TOKEN, URL_BASE, assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

async function openLive(t) {
    const { context, close } = await openBrowser();
    t.after(close);
    const opened = await openPage(context, "runs?status=running");
    await opened.page.locator(".row-link").first().click();
    await opened.page.locator(".dialog-pane .entry").first().waitFor({ timeout: 30_000 });
    return { context, ...opened };
}

const seqs = (page) => page.evaluate(() => [...document.querySelectorAll(".entry-seq")].map((a) => Number(new URL(a.href).searchParams.get("e"))));

test("a running run", async (t) => {
    const { page, wrong } = await openLive(t);
    await page.getByText("Live", { exact: true }).waitFor();
    await shots(page, "live");
    await assertAccessible(page, "live run");
    assert.ok(await page.locator(".sidebar .open-run").count() > 0, "running runs are in the sidebar");

    await page.getByRole("button", { name: "Stop", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Stop this run?" });
    await dialog.waitFor();
    await assertAccessible(page, "stop dialog");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual(wrong, []);
});

test("a lost connection comes back without repeating anything", async (t) => {
    const { page, context } = await openLive(t);
    const before = await seqs(page);
    await context.setOffline(true);
    await page.evaluate(() => dispatchEvent(new Event("offline")));
    await page.waitForTimeout(500);
    await context.setOffline(false);
    await page.evaluate(() => dispatchEvent(new Event("online")));
    await page.getByText("Connected", { exact: true }).first().waitFor();
    const after = await seqs(page);
    assert.equal(new Set(after).size, after.length, "no entry twice");
    assert.ok(after.length > 0 && before.length > 0, "what was shown stays");
});

test("a run that somebody else ends is news on its page", async (t) => {
    const { page, wrong } = await openLive(t);
    const id = decodeURIComponent(new URL(page.url()).pathname.match(/\/runs\/([^/]+)/)[1]);
    const stop = await fetch(new URL(`api/containers/${encodeURIComponent(id)}/stop`, URL_BASE), { method: "POST", headers: TOKEN ? { Authorization: `Bearer ${TOKEN}` } : {} });
    assert.equal(stop.status, 200);
    await page.getByText("Run ended:").first().waitFor();
    assert.deepEqual(wrong, []);
});
