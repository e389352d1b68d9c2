// needs: live
// The terminal: typing and reading, a reload that finds the same shell, pastes that ask first.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

/** The text of the screen, which xterm.js keeps for screen readers (it is switched on here). */
const screen = (page) => page.evaluate(() => document.querySelector(".xterm-accessibility-tree")?.textContent.replace(/\u00a0/g, " ") ?? "");

async function waitForScreen(page, text) {
    await page.waitForFunction((t) => (document.querySelector(".xterm-accessibility-tree")?.textContent ?? "").replace(/\u00a0/g, " ").includes(t), text, { timeout: 20_000 });
}

async function openTerminal(t) {
    const { context, close } = await openBrowser();
    t.after(close);
    await context.addInitScript(() => localStorage.setItem("ssebench-settings", JSON.stringify({ terminalScreenReader: true })));
    const opened = await openPage(context, "runs?status=running");
    const href = await opened.page.locator(".row-link").first().getAttribute("href");
    await opened.page.goto(new URL(`${href}/terminal`, opened.page.url()).href);
    await opened.page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await opened.page.locator(".xterm-helper-textarea").focus();
    return opened;
}

test("typing, and the same shell after a reload", async (t) => {
    const { page, wrong } = await openTerminal(t);
    await page.keyboard.type("MARK=$((6*7)); echo got-$MARK\n");
    await waitForScreen(page, "got-42");
    await page.reload();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await waitForScreen(page, "got-42");
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo still-$MARK\n");
    await waitForScreen(page, "still-42");
    // Last: a shell redraws its prompt at every width, and old output is replayed at one width.
    await shots(page, "terminal");
    assert.deepEqual(wrong, []);
});

test("a run whose container does not run yet has no terminal, then one", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    let early = true;
    await context.route("**/api/containers**", async (route) => {
        const answer = await route.fetch();
        const body = await answer.text();
        await route.fulfill({ response: answer, body: early ? body.replaceAll('"status":"running"', '"status":"created"') : body });
    });
    const { page, wrong } = await openPage(context, "runs?status=running");
    const href = await page.locator(".row-link").first().getAttribute("href");
    await page.goto(new URL(`${href}/terminal`, page.url()).href);
    await page.getByText("The run is starting").waitFor();
    early = false;
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    assert.deepEqual(wrong, []);
});

/** The rows of the visible screen, and where the cursor stands, as xterm.js has them. */
const rows = (page) => page.evaluate(() => [...document.querySelectorAll(".xterm-accessibility-tree > div")].map((row) => row.textContent.replace(/\u00a0/g, " ").trimEnd()));

test("the last row is whole at any height", async (t) => {
    const { page } = await openTerminal(t);
    for (let height = 816; height >= 800; height -= 4) {
        await page.setViewportSize({ width: 1280, height });
        await page.waitForFunction((h) => innerHeight === h && document.querySelector(".xterm-screen").getBoundingClientRect().bottom <= document.querySelector(".terminal-place").getBoundingClientRect().bottom, height);
    }
});

test("after resizes a reload shows the same screen", async (t) => {
    const { page, wrong } = await openTerminal(t);
    await page.keyboard.type("PS1='> '; clear\n");
    // Lines that wrap and are drawn over at one width, at another width, and at the last one.
    const show = async (mark) => {
        await page.keyboard.type(`printf '%0100d|\\r%s\\n' 7 ${mark}; stty size\n`);
        await page.waitForFunction((m) => [...document.querySelectorAll(".xterm-accessibility-tree > div")].some((row) => row.textContent.startsWith(m)), mark, { timeout: 20_000 });
    };
    await page.setViewportSize({ width: 1500, height: 800 });
    await show("wide");
    await page.setViewportSize({ width: 1200, height: 800 });
    await page.waitForTimeout(300); // the terminal follows its box on the next frame
    await show("narrow");
    await page.setViewportSize({ width: 1350, height: 800 });
    await page.waitForTimeout(300);
    await show("middle");
    await page.keyboard.type("echo last-$((6*7))");
    await waitForScreen(page, "last-$((6*7))");
    const before = await rows(page);
    await page.reload();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await waitForScreen(page, "last-$((6*7))");
    await page.waitForFunction((want) => JSON.stringify([...document.querySelectorAll(".xterm-accessibility-tree > div")].map((row) => row.textContent.replace(/\u00a0/g, " ").trimEnd())) === want, JSON.stringify(before), { timeout: 10_000 }).catch(async () => assert.deepEqual(await rows(page), before));
    assert.deepEqual(wrong, []);
});

test("wide characters take two columns, and none is cut at the edge", async (t) => {
    const { page } = await openTerminal(t);
    await page.keyboard.type("PS1='> '; clear; printf '%0*d\\u6f22|\\n' $(($(tput cols)-1)) 0; printf 'a\\u6f22\\u5b57b\\U0001f44dc\\r\\033[5Cb\\033[2CX\\n'; printf 'done-%s\\n' $((1+1))\n");
    await waitForScreen(page, "done-2");
    const shown = await rows(page);
    const at = shown.findIndex((row) => row.startsWith("done-2"));
    assert.deepEqual(shown.slice(at - 2, at), ["漢|", "a漢字b👍X"]);
});

test("another window takes over, the first looks on and takes it back", async (t) => {
    const { page } = await openTerminal(t);
    await page.keyboard.type("echo first-$((1+1))\n");
    await waitForScreen(page, "first-2");
    const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }));
    const other = await page.context().newPage();
    await other.addInitScript((all) => { for (const [key, value] of Object.entries(JSON.parse(all))) sessionStorage.setItem(key, value); }, kept);
    await other.goto(page.url());
    await waitForScreen(other, "first-2");
    await page.getByText("Another window shows this shell now").waitFor();
    await page.getByRole("button", { name: "Watch" }).click();
    await page.getByText("Read only").waitFor();
    await other.locator(".xterm-helper-textarea").focus();
    await other.keyboard.type("echo second-$((1+1))\n");
    await waitForScreen(page, "second-2");
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo not-$((1+1))\n");
    await page.getByRole("button", { name: "Take over" }).click();
    await other.getByText("Another window shows this shell now").waitFor();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo third-$((1+1))\n");
    await waitForScreen(page, "third-2");
    assert.doesNotMatch(await screen(page), /not-2/, "who looks on types nothing");
});

test("a paste of several lines asks, and escapes do not come through", async (t) => {
    const { page } = await openTerminal(t);
    const paste = (text) => page.evaluate((value) => {
        const data = new DataTransfer();
        data.setData("text/plain", value);
        document.querySelector(".xterm-helper-textarea").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
    }, text);
    await paste("echo one\necho two");
    const dialog = page.getByRole("dialog", { name: "Paste 2 lines?" });
    await dialog.waitFor();
    await assertAccessible(page, "paste dialog");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    assert.doesNotMatch(await screen(page), /echo two/, "nothing was pasted");
    await paste("echo in\x1b[201~side");
    await waitForScreen(page, "echo in[201~side");
});

test("font size, colours and copy on select are settings", async (t) => {
    const { page } = await openTerminal(t);
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    const before = (await rows(page)).length;
    await page.context().addInitScript(() => localStorage.setItem("ssebench-settings", JSON.stringify({ terminalScreenReader: true, terminalFontSize: 18, terminalTheme: "dracula", terminalCopyOnSelect: true })));
    await page.reload();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await page.waitForFunction((n) => { const { length } = document.querySelectorAll(".xterm-accessibility-tree > div"); return length > 0 && length < n; }, before);
    assert.equal(await page.locator(".terminal-place").evaluate((place) => getComputedStyle(place).backgroundColor), "rgb(40, 42, 54)");
    const bigger = (await rows(page)).length;
    for (let i = 0; i < 5; i++) await page.getByRole("button", { name: "Bigger text" }).click();
    await page.waitForFunction((n) => document.querySelectorAll(".xterm-accessibility-tree > div").length < n, bigger);
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("clear; printf 'picked%s\\n' word\n");
    await waitForScreen(page, "pickedword");
    const all = await rows(page), at = all.findIndex((row) => row.startsWith("pickedword"));
    const box = await page.locator(".xterm-screen").boundingBox();
    await page.mouse.dblclick(box.x + 20, box.y + (at + 0.5) * box.height / all.length);
    await page.waitForFunction(async () => (await navigator.clipboard.readText()) === "pickedword");
});

test("the end of a shell is told, and Restart opens a new one", async (t) => {
    const { page } = await openTerminal(t);
    await page.keyboard.type("exit 7\n");
    await page.getByText("Process exited with code 7").waitFor();
    await page.getByRole("button", { name: "Restart" }).click();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo fresh-$((2+3))\n");
    await waitForScreen(page, "fresh-5");
    // Restart while it lives: the old shell ends, it does not wait for its orphan's end.
    const sessions = () => page.evaluate(async () => (await (await fetch("api/pty/sessions")).json()).processes.filter((p) => !p.ended).length);
    const open = await sessions();
    await page.getByRole("button", { name: "Restart" }).click();
    await page.locator(".terminal-pane").getByText("Connected", { exact: true }).waitFor();
    await page.locator(".xterm-helper-textarea").focus();
    await page.keyboard.type("echo again-$((2+3))\n");
    await waitForScreen(page, "again-5");
    for (let i = 0; i < 100 && await sessions() > open; i++) await page.waitForTimeout(100);
    assert.equal(await sessions(), open);
});
