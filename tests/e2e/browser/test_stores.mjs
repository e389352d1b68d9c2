// What the page keeps, without a browser: answers and events come when the test says so.
import test from "node:test";
import assert from "node:assert/strict";
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const STORES = fileURLToPath(new URL("../../../worker/web/src/stores/", import.meta.url));
const nothing = () => {};

/** Requests that change something wait here for the test's answer; whatever only reads has one at once. */
const posts = [];

const reply = (status, document) => new Response(JSON.stringify(document), { status, headers: { "Content-Type": "application/json" } });

function fakeFetch(url, { method, headers, body }) {
    const path = new URL(url).pathname.replace(/^\/api\//, "");
    if (method === "GET") return Promise.resolve(reply(200, path.endsWith("/health") ? { healthy: true } : []));
    return new Promise((resolve, reject) => posts.push({
        path, headers, body: JSON.parse(body),
        answer: (status, document) => resolve(reply(status, document)),
        lose: () => reject(new TypeError("fetch failed")),
    }));
}

const storage = { getItem: () => null, setItem: nothing, removeItem: nothing };
Object.assign(globalThis, {
    window: globalThis, document: { hidden: false, documentElement: { dataset: {} }, baseURI: "http://x/", addEventListener: nothing },
    location: new URL("http://x/"), history: {}, addEventListener: nothing, sessionStorage: storage, localStorage: storage,
    matchMedia: () => ({ matches: false, addEventListener: nothing }), fetch: fakeFetch,
});

async function load(name) {
    const { outputFiles } = await build({ entryPoints: [`${STORES}${name}.ts`], bundle: true, format: "esm", write: false });
    return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

/** Everything that was answered has been taken in. */
const settled = () => new Promise((done) => setTimeout(done, 20));

test("a launch whose answer was lost is asked for again under its key, and starts no second run", async () => {
    const wizard = await load("wizard");
    posts.length = 0;
    wizard.agent.value = "claude";
    wizard.model.value = "m";
    wizard.chosenTasks.value = new Set(["t1", "t2"]);
    /** Click, and let the answer of both launches be as told; returns their keys. */
    const launch = async (...outcomes) => {
        const from = posts.length, done = wizard.launchAll();
        await settled();
        const made = posts.slice(from);
        made.forEach((post, i) => (outcomes[i] === null ? post.lose() : post.answer(outcomes[i], { launch_id: "l", error: "e" })));
        await done;
        return made.map((post) => post.headers["Idempotency-Key"]);
    };
    const first = await launch(null, 200);
    assert.equal(new Set(first).size, 2, "one key a task");
    const second = await launch(504, 422);
    assert.equal(second[0], first[0], "the lost one is the same launch");
    assert.notEqual(second[1], first[1], "the answered one is another");
    const third = await launch(200, null);
    assert.equal(third[0], first[0], "a gateway that gave up is no answer");
    assert.notEqual(third[1], second[1], "a refusal is one");
    wizard.timeout.value = "30";
    const other = await launch(200, 200);
    assert.equal(new Set([...first, ...second, ...third, ...other]).size, 6, "another launch has another key");
    wizard.timeout.value = "60";
    const last = await launch(200, 200);
    assert.notEqual(last[0], third[0]);
    assert.equal(last[1], third[1], "what was lost before is still known");
});
