// needs: token
// The token prompt: wrong token, right token, where it is kept.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, openBrowser, openPage, shots, TOKEN } from "./page.mjs";

test("the token prompt", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context, "", { token: "" });
    const refused = [];
    page.on("response", (response) => response.status() === 401 && refused.push(new URL(response.url()).pathname));
    const field = page.getByLabel("Access token");
    await field.waitFor();
    await shots(page, "token");
    await assertAccessible(page, "token prompt");
    assert.equal(await page.getByRole("button", { name: "Continue" }).isDisabled(), true, "nothing to send yet");

    await field.fill("0123456789abcdef-wrong");
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByText("The server rejected this token.").waitFor();
    assert.equal(await page.evaluate(() => sessionStorage.getItem("ssebench-webui-token")), null, "a refused token is forgotten");

    await field.fill(`  ${TOKEN} `);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Runs", exact: true }).waitFor();
    await page.getByRole("row").nth(1).waitFor();
    assert.deepEqual(refused.filter((path) => !path.endsWith("/health")), [], "no view asks behind the first prompt");
    assert.equal(await page.evaluate(() => sessionStorage.getItem("ssebench-webui-token")), TOKEN);
    assert.equal(await page.evaluate(() => JSON.stringify(localStorage).includes(sessionStorage.getItem("ssebench-webui-token"))), false, "the token is in no other storage");
    assert.ok(!page.url().includes(TOKEN), "the token is not in the address");

    await page.reload();
    await page.getByRole("row").nth(1).waitFor();

    // Forgotten, it is used nowhere: what was connected under it ends too.
    const sockets = [];
    page.on("websocket", (socket) => sockets.push(socket));
    await page.goto(new URL("settings", page.url()).href);
    const forget = page.getByRole("button", { name: "Forget the token" });
    await forget.waitFor();
    for (const end = Date.now() + 30_000; sockets.length === 0 && Date.now() < end;) await page.waitForTimeout(50);
    assert.ok(sockets.length > 0, "the page is connected");
    await forget.click();
    await field.waitFor();
    for (const socket of sockets) if (!socket.isClosed()) await socket.waitForEvent("close");
    assert.equal(await page.evaluate(() => sessionStorage.getItem("ssebench-webui-token")), null);
    assert.deepEqual(wrong, []);
});
