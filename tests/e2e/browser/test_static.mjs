// An exported site on a plain static host, in a folder of it: list, dialog, changes, logs.
import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assertAccessible, openBrowser, openPage, shots } from "./page.mjs";

const BUILD = process.env.SSEBENCH_BUILD || join(dirname(fileURLToPath(import.meta.url)), "../../../build");
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };

/** Files below `folder`, under /bench/ and nothing else; what was asked for in vain is kept. */
function serve(folder) {
    const missed = [];
    const server = createServer((request, response) => {
        const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
        const name = path.replace(/^\/bench\//, "").replace(/^$/, "index.html");
        try {
            if (!path.startsWith("/bench/") || name.includes("..")) throw new Error("outside");
            const body = readFileSync(join(folder, name));
            response.writeHead(200, { "Content-Type": TYPES[extname(name)] ?? "application/octet-stream" }).end(body);
        } catch {
            missed.push(path);
            response.writeHead(404).end();
        }
    });
    return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({
        missed, url: `http://127.0.0.1:${server.address().port}/bench/`, close: () => server.close() })));
}

test("a site without a server", async (t) => {
    const out = mkdtempSync(join(tmpdir(), "ssebench-static-"));
    t.after(() => rmSync(out, { recursive: true, force: true }));
    execFileSync(join(BUILD, "ssebench-webui"), ["export", "--results", join(process.env.SSEBENCH_CHECKOUT, "results"), "--out", out]);
    const site = await serve(out);
    t.after(site.close);
    const { context, close } = await openBrowser();
    t.after(close);

    const { page, wrong } = await openPage(context, `${site.url}#/runs?grade=passed`);
    await page.locator(".row-link").first().waitFor();
    const { containers } = JSON.parse(readFileSync(join(out, "data/runs.json"), "utf8"));
    const passed = containers.filter((run) => run.grade === "passed");
    assert.equal(await page.locator(".row-link").count(), passed.length);
    await shots(page, "static-runs");
    await page.locator(".row-link").first().click();
    await page.locator(".entry").first().waitFor();
    await page.locator(".diff-line").first().waitFor();
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.locator(".log-line").first().waitFor();
    await shots(page, "static-run");
    await assertAccessible(page, "static-run");

    writeFileSync(join(out, "data/runs.json"), JSON.stringify({ containers, resultsCut: "There are too many" }));
    const { page: cut } = await openPage(context, `${site.url}#/runs`);
    await cut.getByText("Finished runs may be missing: There are too many").waitFor();

    const { page: again, wrong: wrongAgain } = await openPage(context, page.url());
    await again.locator(".entry").first().waitFor();
    assert.deepEqual([...wrong, ...wrongAgain], []);
    assert.deepEqual(site.missed.filter((path) => path !== "/favicon.ico"), []);
});
