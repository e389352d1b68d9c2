// needs: live
// needs: roles
// What a token's role hides, what the page says of the token, and a token that is revoked.
import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

const TOKENS = JSON.parse(process.env.SSEBENCH_ROLES);

/** The live run in a tab that holds the token of this role. */
async function openRun(t, role) {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context, "runs/live-1", { token: TOKENS[role] });
    await page.getByRole("tab", { name: "Logs" }).waitFor();
    return { page, wrong };
}

/** What the connection page tells of the token. */
async function tokenLine(page) {
    await page.goto(new URL("connection", page.url().replace(/runs\/.*/, "")).href);
    const row = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "Token", exact: true }) });
    await row.getByText("role").waitFor();
    return row.innerText();
}

const links = (page) => page.getByRole("link", { name: "Launch", exact: true }).count();
const tabs = (page, name) => page.getByRole("tab", { name, exact: true }).count();

test("a token that may view", async (t) => {
    const { page, wrong } = await openRun(t, "view");
    assert.equal(await tabs(page, "Terminal"), 0);
    assert.equal(await tabs(page, "AI"), 0);
    assert.equal(await links(page), 0);
    assert.match(await tokenLine(page), /viewer, role view, does not end/);
    await shots(page, "connection-view");
    await assertAccessible(page, "connection of a viewer");
    await page.goto(page.url().replace(/connection$/, "launch"));
    await page.getByText("This token may only view").waitFor();
    await page.goto(page.url().replace(/launch$/, "settings"));
    await page.getByText("look at runs, and change nothing (role view)").waitFor();
    assert.deepEqual(wrong, []);
});

test("a token that may operate", async (t) => {
    const { page, wrong } = await openRun(t, "operate");
    assert.equal(await tabs(page, "Terminal"), 0);
    assert.equal(await tabs(page, "AI"), 0);
    assert.equal(await links(page), 1);
    assert.match(await tokenLine(page), /operator, role operate, ends 2\d\d\d-/);
    assert.deepEqual(wrong, []);
});

test("a token that may do all, until it is revoked", async (t) => {
    const { page, wrong } = await openRun(t, "full");
    await page.getByRole("tab", { name: "Terminal", exact: true }).waitFor();
    assert.equal(await links(page), 1);
    execFileSync(process.env.SSEBENCH_PROGRAM, ["token", "revoke", "all"], { stdio: "ignore" });
    process.kill(Number(process.env.SSEBENCH_PID), "SIGHUP");
    await page.getByLabel("Access token").waitFor();
    await page.getByLabel("Access token").fill(TOKENS.view);
    await page.keyboard.press("Enter");
    await page.getByRole("tab", { name: "Logs" }).waitFor();
    await page.getByRole("tab", { name: "Terminal", exact: true }).waitFor({ state: "detached" });
    assert.equal(await links(page), 0);
    assert.deepEqual(wrong, []);
});
