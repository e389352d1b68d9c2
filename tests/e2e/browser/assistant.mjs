// The AI tab on a run with the real OpenCode (started by tests/e2e/test_assistant.py): a
// conversation, a permission denied and one allowed, a provider's error, a reload.
import test from "node:test";
import assert from "node:assert/strict";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

const PATIENT = { timeout: 90_000 };
const answers = (page) => page.locator(".chat-log .answer");

async function say(page, text) {
    const field = page.getByLabel("Message to the assistant");
    await field.fill(text, PATIENT);
    await field.press("Enter");
}

/** The answer is over when the button that stops it is a button that sends again. */
const over = (page) => page.getByRole("button", { name: "Send", exact: true }).waitFor(PATIENT);

test("a conversation with the assistant", async (t) => {
    const { context, close } = await openBrowser();
    t.after(close);
    const { page, wrong } = await openPage(context, "runs?status=running");
    await page.locator(".row-link").first().click();
    await page.getByRole("tab", { name: "AI" }).click();
    await page.getByText(/OpenCode connected/).waitFor(PATIENT);
    await page.locator(".preset").first().waitFor();
    await shots(page, "assistant-empty");
    await assertAccessible(page, "assistant, empty");

    await page.locator(".preset").first().click();
    assert.ok((await page.getByLabel("Message to the assistant").inputValue()).length > 100, "a preset fills the field");
    await say(page, "What went wrong here?");
    await answers(page).filter({ hasText: "Hello from the stub." }).first().waitFor(PATIENT);
    await over(page);
    await page.locator(".chat-session").first().waitFor(PATIENT);

    await say(page, "BASH:echo denied-$((1+1)) > denied");
    const dialog = page.getByRole("dialog", { name: "Execute Command" });
    await dialog.waitFor(PATIENT);
    await dialog.getByText("echo denied-$((1+1)) > denied").first().waitFor();
    await shots(page, "assistant-asks");
    await assertAccessible(page, "permission dialog");
    await dialog.getByRole("button", { name: "Deny" }).click();
    await dialog.waitFor({ state: "detached" });
    await over(page);

    await say(page, "BASH:echo allowed-$((40+2))");
    await dialog.waitFor(PATIENT);
    await dialog.getByRole("button", { name: "Allow", exact: true }).click();
    await answers(page).filter({ hasText: "allowed-42" }).first().waitFor(PATIENT);
    await over(page);
    await shots(page, "assistant");
    await assertAccessible(page, "assistant");

    await say(page, "FAIL:400");
    await page.getByText("The assistant reported an error.").waitFor(PATIENT);
    await over(page);
    await shots(page, "assistant-error");
    await assertAccessible(page, "assistant with an error");

    await page.reload();
    await page.locator(".chat-session").first().click(PATIENT);
    await answers(page).filter({ hasText: "allowed-42" }).first().waitFor(PATIENT);
    await page.getByRole("button", { name: /^Delete / }).first().click();
    await page.getByRole("dialog", { name: "Delete this conversation?" }).getByRole("button", { name: "Delete" }).click();
    await page.getByText("No conversations yet").waitFor(PATIENT);
    assert.deepEqual(wrong, []);
});
