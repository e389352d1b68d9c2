// The run list: rows are links, search and filters stand in the address, the back button works.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

test("the run list", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context);
    const rows = page.locator(".run-row:not(.head)");
    await rows.first().waitFor();
    const all = await rows.count();
    assert.ok(all >= 3, "the demonstration has runs");
    await shots(page, "runs");
    await assertAccessible(page, "run list");

    const task = await rows.first().locator(".row-link").textContent();
    await page.keyboard.press("/");
    await page.keyboard.type(task);
    await page.waitForFunction((t) => [...document.querySelectorAll(".row-link")].every((link) => link.textContent === t), task);
    assert.ok(page.url().includes(`q=${encodeURIComponent(task)}`), "the filter is in the address");
    await page.reload();
    await page.waitForFunction((t) => document.querySelectorAll(".row-link").length > 0 && [...document.querySelectorAll(".row-link")].every((link) => link.textContent === t), task);

    await page.getByLabel("Search runs").fill("no such thing anywhere");
    await page.getByText("No run fits").waitFor();
    await page.getByRole("button", { name: "Show all runs" }).click();
    await rows.nth(all - 1).waitFor();

    await page.getByRole("columnheader", { name: "Task" }).getByRole("button").click();
    await page.waitForFunction(() => document.querySelector('[aria-sort="descending"]')?.textContent.startsWith("Task"));
    await page.waitForFunction(() => {
        const names = [...document.querySelectorAll(".row-link")].map((link) => link.textContent);
        return names.every((name, i) => i === 0 || names[i - 1] >= name);
    });

    const href = await page.locator(".row-link").first().getAttribute("href");
    await page.locator(".row-link").first().click();
    await page.waitForURL((url) => url.pathname === href);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await page.goBack();
    await rows.first().waitFor();
    assert.deepEqual(wrong, []);
});

test("keys move along the rows", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page } = await openPage(context);
    await page.locator(".row-link").nth(1).waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    assert.equal(await page.evaluate(() => [...document.querySelectorAll(".row-link")].indexOf(document.activeElement)), 1);
    await page.keyboard.press("k");
    await page.keyboard.press("Enter");
    await page.locator(".run-head").waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await assertAccessible(page, "list of keys");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
});
