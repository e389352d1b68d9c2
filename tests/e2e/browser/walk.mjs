// A newcomer's walk through a server: token, list, a finished run, a launch that is watched to
// its end, a comparison, a shell. Each step prints how long it took. Run as a test in Firefox and,
// for the times, by tests/bench/bench_walk.py in Chromium.
import assert from "node:assert/strict";
import { FIREFOX, openBrowser, openPage, shot, TOKEN, URL_BASE } from "./page.mjs";

const PATIENT = { timeout: 60_000 };
let since = performance.now();

function step(name) {
    const now = performance.now();
    console.log(`step ${JSON.stringify({ name, ms: Math.round(now - since) })}`);
    since = performance.now();
}

async function signIn(page) {
    await page.getByLabel("Access token").fill(TOKEN, PATIENT);
    await page.getByRole("button", { name: "Continue" }).click();
}

/** The list, and what there is to see of the newest finished run. */
async function look(page) {
    await page.locator(".run-row:not(.head)").first().waitFor(PATIENT);
    step("the list of runs");
    await page.getByLabel("Grade").selectOption("passed");
    await page.waitForURL(/grade=passed/);
    await page.locator(".row-link").first().click();
    await page.locator(".entry").first().waitFor(PATIENT);
    await page.locator(".diff-line").first().waitFor(PATIENT);
    step("a finished run: dialog and patch");
    await page.getByRole("tab", { name: "Grade" }).click();
    await page.locator(".grade-card").waitFor(PATIENT);
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.locator(".log-line").first().waitFor(PATIENT);
    step("its grade and its log");
}

async function launch(page) {
    await page.getByRole("link", { name: "Launch", exact: true }).click();
    await page.locator(".task-row input").first().check(PATIENT);
    const next = () => page.getByRole("button", { name: "Next" }).click();
    await next();
    await page.getByRole("radio", { name: /Claude Code/ }).check();
    await next();
    await page.locator('input[name="model"]').first().check();
    for (let i = 0; i < 3; i++) await next();
    await page.getByText(/ssebench run --task/).waitFor(PATIENT);
    step("the wizard");
    await page.getByRole("button", { name: "Launch 1 task" }).click();
    await page.waitForURL(/\/runs\//, PATIENT);
    await page.locator(".run-head").waitFor(PATIENT);
    step("from Launch to the running run");
    await page.waitForFunction(() => Number(/seq: (\d+)/.exec(document.querySelector(".dialog-pane .pane-foot")?.textContent ?? "")?.[1]) > 3, null, PATIENT);
    step("its fourth entry is on the screen");
    await page.locator(".run-title").getByText("Passed", { exact: true }).waitFor(PATIENT);
    step("its grade is on the screen");
}

async function compare(page) {
    await page.getByRole("link", { name: "Compare" }).last().click();
    await page.getByLabel("Second run").selectOption({ index: 2 }, PATIENT);
    await page.locator(".figures").waitFor(PATIENT);
    await page.getByRole("button", { name: "Dialogs" }).click();
    await page.locator(".pair .entry").nth(1).waitFor(PATIENT);
    await page.getByRole("button", { name: "Patches" }).click();
    await page.locator(".split-side").nth(1).waitFor(PATIENT);
    step("beside another run: figures, dialogs, patches");
}

async function shell(page) {
    const href = await page.locator(".sidebar .open-runs a").filter({ hasText: "Running" }).first().getAttribute("href");
    await page.goto(new URL(`${href}/terminal`, page.url()).href);
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor(PATIENT);
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo got-$((6*7))\n");
    await page.waitForFunction(() => (document.querySelector(".xterm-accessibility-tree")?.textContent ?? "").includes("got-42"), null, PATIENT);
    step("a shell in the run, and its first answer");
}

const { context, close } = await openBrowser();
try {
    await context.addInitScript(() => {
        if (location.protocol === "http:") localStorage.setItem("ssebench-settings", JSON.stringify({ terminalScreenReader: true }));
    });
    step("the browser starts");
    const { page, wrong } = await openPage(context, "", { token: "" });
    if (TOKEN) await signIn(page);
    await look(page);
    await launch(page);
    await compare(page);
    await shell(page);
    await page.goBack();
    await page.waitForURL((url) => !url.pathname.endsWith("/terminal"), PATIENT);
    await page.goto(new URL("matrix", URL_BASE).href);
    await page.locator(".matrix-table tbody .cell a").first().waitFor(PATIENT);
    step("back, and the matrix");
    assert.deepEqual(wrong, []);
    // Last: what a screenshot adds to the page breaks its policy, and Firefox says so.
    await shot(page, `walk${FIREFOX && "-firefox"}`);
} finally {
    await close();
}
