// The launch wizard by keyboard alone, the launch on its way, and the run that comes of it.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

test("a launch, from the wizard to the running run", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context, "launch");
    await page.locator(".task-row").first().waitFor();
    await shots(page, "launch-task");
    await assertAccessible(page, "task step");
    assert.equal(await page.getByRole("button", { name: "Next" }).isDisabled(), true, "a task is needed");

    await page.locator(".task-row input").first().focus();
    await page.keyboard.press("Space");
    await page.locator(".wizard-body").focus();
    await page.keyboard.press("n");
    await page.locator('input[name="agent"]').first().waitFor();
    await assertAccessible(page, "agent step");
    await page.getByRole("radio", { name: /Claude Code/ }).check();
    await page.locator(".wizard-body").focus();
    await page.keyboard.press("n");
    await page.locator('input[name="model"]').first().check();
    await shots(page, "launch-model");
    await assertAccessible(page, "model step");
    await page.locator(".wizard-body").focus();
    await page.keyboard.press("n");
    await page.getByRole("radio", { name: /Sandbox/ }).waitFor();
    await assertAccessible(page, "mode step");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByLabel("Minutes").fill("0");
    await page.getByText("Whole minutes from 1 to 10080").waitFor();
    assert.equal(await page.getByRole("button", { name: "Next" }).isDisabled(), true);
    await page.getByLabel("Minutes").fill("30");
    await shots(page, "launch-options");
    await assertAccessible(page, "options step");
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByText(/ssebench run --task/).waitFor();
    assert.match(await page.locator(".command pre").textContent(), /--timeout 1800/);
    await shots(page, "launch-review");
    await assertAccessible(page, "review step");

    await page.getByRole("button", { name: "Launch 1 task" }).click();
    await page.waitForURL(/launches\//);
    await page.locator(".launching, .run-head").first().waitFor();
    await shots(page, "launching");
    // The run takes the launch's place as soon as it exists.
    await page.waitForURL(/runs\//, { timeout: 60_000 });
    await page.locator(".run-head").waitFor();
    await page.locator(".log-line").first().waitFor({ timeout: 60_000 });
    await assertAccessible(page, "a running run");
    await shots(page, "running");
    assert.deepEqual(wrong, []);
});

test("a launch can be cancelled and dismissed", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page } = await openPage(context, "launch");
    await page.locator(".task-row input").nth(1).check();
    await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("radio", { name: /Reference/ }).check();
    for (let i = 0; i < 4; i++) await page.getByRole("button", { name: "Next" }).click();
    await page.getByRole("button", { name: "Launch 1 task" }).click();
    await page.waitForURL(/launches\//);
    // The stand-in may be quicker than a click: then there is a run and nothing to cancel.
    const cancel = page.getByRole("button", { name: "Cancel", exact: true });
    const run = page.locator(".run .run-head");
    await cancel.or(run).first().waitFor();
    if (await run.count()) return t.skip("the run was there at once");
    await cancel.click({ timeout: 2000 }).catch(() => {});
    if (!/launches\//.test(page.url())) return t.skip("the run was there at once");
    await page.getByText("Cancelled by user").first().waitFor();
    await page.getByRole("button", { name: "Dismiss", exact: true }).click();
    await page.locator(".run-row:not(.head)").first().waitFor();
});
