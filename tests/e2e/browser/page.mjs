// Opens the page in a headless Chromium, or in the Firefox that $SSEBENCH_FIREFOX names (through
// WebDriver BiDi, so any Firefox will do), for the tests beside this file. The server's address
// and the browser come from the environment (see tests/e2e/test_browser.py).
import { chromium, firefox } from "playwright-core";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import assert from "node:assert/strict";

export const URL_BASE = process.env.SSEBENCH_TEST_URL ?? process.env.SSEBENCH_URL;
export const TOKEN = process.env.SSEBENCH_TOKEN ?? "";
const ARTEFACTS = process.env.SSEBENCH_TEST_ARTEFACTS ?? process.env.SSEBENCH_ARTEFACTS ?? join(tmpdir(), "ssebench-artefacts");
export const FIREFOX = process.env.SSEBENCH_FIREFOX ?? "";
const ARGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

if (!URL_BASE) {
    console.error("SSEBENCH_URL names no server");
    process.exit(77);
}
mkdirSync(ARTEFACTS, { recursive: true });

export const WIDE = { width: 1360, height: 820 };
export const NARROW = { width: 360, height: 740 };

// Firefox asks home for news and experiments; here it finds only this machine.
const ALONE = { "network.proxy.type": 1, "network.proxy.http": "127.0.0.1", "network.proxy.http_port": 9, "network.proxy.ssl": "127.0.0.1", "network.proxy.ssl_port": 9 };

/** A context of a browser that was started for it, and how both end. */
async function startFirefox(how) {
    const browser = await firefox.launch({ channel: "moz-firefox", executablePath: FIREFOX, headless: true, firefoxUserPrefs: ALONE });
    return { context: await browser.newContext(how), close: () => browser.close() };
}

async function startChromium(how) {
    const profile = mkdtempSync(join(tmpdir(), "ssebench-browser-"));
    const context = await chromium.launchPersistentContext(profile, { executablePath: process.env.SSEBENCH_CHROMIUM ?? "/usr/bin/chromium", args: ARGS, ...how });
    const close = async () => {
        await context.close();
        rmSync(profile, { recursive: true, force: true });
    };
    return { context, close };
}

/** A browser with a profile of its own; close() ends it and removes that. */
export const openBrowser = (options = {}) => (FIREFOX ? startFirefox : startChromium)({ viewport: WIDE, colorScheme: "light", ...options });

/** What the browser complained about: scripts that threw, policies that were broken. */
export function complaints(page) {
    const list = [];
    // A socket that is left while it connects is an error to Firefox, as is one of a server that goes.
    page.on("pageerror", (error) => /establish a connection|was interrupted while the page was loading/.test(error.message) || list.push(`error: ${error.message}`));
    page.on("console", (message) => {
        if (message.type() === "error" && /Content Security Policy|TrustedHTML|Uncaught/.test(message.text())) list.push(message.text());
    });
    return list;
}

/** A page at `path` below the server's base, with the token already in its session storage. */
export async function openPage(context, path = "", { token = TOKEN } = {}) {
    const page = await context.newPage();
    const wrong = complaints(page);
    if (token) await page.addInitScript((value) => sessionStorage.setItem("ssebench-webui-token", value), token);
    await page.goto(new URL(path, URL_BASE).href);
    return { page, wrong };
}

export const shot = (page, name) => page.screenshot({ path: join(ARTEFACTS, `${name}.png`) });

/** One screenshot each in light, dark, wide and narrow. */
export async function shots(page, name) {
    for (const scheme of ["light", "dark"])
        for (const [label, size] of [["wide", WIDE], ["narrow", NARROW]]) {
            await page.emulateMedia({ colorScheme: scheme });
            await page.setViewportSize(size);
            await page.waitForTimeout(150);
            await shot(page, `${name}-${scheme}-${label}`);
        }
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize(WIDE);
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails with every violation that axe finds on the page, in light and in dark. */
export async function assertAccessible(page, name) {
    for (const scheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: scheme });
        await page.evaluate(AXE);
        const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
        const text = violations.map((v) => `${v.id}: ${v.nodes.slice(0, 4).map((n) => n.target.join(" ")).join(", ")}`);
        assert.deepEqual(text, [], `${name} in ${scheme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
}
