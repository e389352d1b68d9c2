// What the page keeps, without a browser: answers and events come when the test says so.
import test from "node:test";
import assert from "node:assert/strict";
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const STORES = fileURLToPath(new URL("../../../worker/web/src/stores/", import.meta.url));
const nothing = () => {};

/** Requests that change something wait here for the test's answer; whatever only reads has one at once. */
const posts = [];
const sockets = [];

class FakeSocket {
    static OPEN = 1;
    readyState = 1;
    closed = false;

    constructor(url) {
        this.session = new URL(url).searchParams.get("sessionId");
        sockets.push(this);
    }

    close() {
        this.closed = true;
    }
}

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
    matchMedia: () => ({ matches: false, addEventListener: nothing }), fetch: fakeFetch, WebSocket: FakeSocket,
});

async function load(name) {
    const { outputFiles } = await build({ entryPoints: [`${STORES}${name}.ts`], bundle: true, format: "esm", write: false });
    return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

/** Everything that was answered has been taken in. */
const settled = () => new Promise((done) => setTimeout(done, 20));
const { Assistant } = await load("assistant");

function assistant(t) {
    posts.length = sockets.length = 0;
    const a = new Assistant("run", () => "/src");
    t.after(() => a.close());
    return a;
}

const listening = () => sockets.filter((socket) => !socket.closed).map((socket) => socket.session);
const paths = () => posts.map((post) => post.path.replace("containers/run/opencode/sessions", ""));
const asks = (id, sessionID) => ({ data: JSON.stringify({ type: "permission.asked", data: { properties: { id, sessionID, permission: "bash", patterns: ["ls"] } } }) });

test("a new conversation that is ready too late is not put over the one that was opened", async (t) => {
    const a = assistant(t);
    const sent = a.send("hello");
    assert.deepEqual(paths(), [""]);
    a.open("Y");
    posts[0].answer(200, { id: "X", notice: "a notice of X" });
    await settled();
    assert.equal(a.session.value, "Y");
    assert.deepEqual(listening(), ["Y"]);
    assert.deepEqual(paths(), ["", "/X/messages"], "what was sent goes where it was meant to go");
    posts[1].answer(404, { error: "no such session" });
    assert.equal(await sent, true, "the text does not come back into the field of another conversation");
    assert.deepEqual([a.busy.value, a.error.value, a.expired.value, a.notice.value], [false, null, false, null]);
});

test("how a message fared is told in its own conversation only", async (t) => {
    const a = assistant(t);
    a.open("X");
    const first = a.send("one");
    a.open("Y");
    const second = a.send("two");
    posts[0].answer(404, { error: "no such session" });
    await first;
    assert.deepEqual([a.busy.value, a.sending.value, a.error.value, a.expired.value], [true, "two", null, false]);
    posts[1].answer(404, { error: "no such session" });
    assert.equal(await second, false);
    assert.deepEqual([a.busy.value, a.sending.value, a.expired.value], [false, null, true]);
});

test("a permission is shown in, answered to and remembered for the conversation that asks", async (t) => {
    const a = assistant(t);
    a.open("Y");
    const [y] = sockets, late = y.onmessage;
    late(asks("p1", "Y"));
    late(asks("p2", "Y"));
    const [p1] = a.permissions.value;
    void a.reply(p1, true, true);
    posts[0].answer(200, {});
    await settled();
    assert.deepEqual(paths(), ["/Y/permissions/p1", "/Y/permissions/p2"], "always: the second without a click");

    a.open("Z");
    assert.deepEqual(listening(), ["Z"]);
    late(asks("p3", "Y"));
    await settled();
    assert.deepEqual(a.permissions.value, [], "nothing of another conversation is shown");
    sockets[1].onmessage(asks("p4", "Z"));
    await settled();
    assert.deepEqual(a.permissions.value.map((p) => [p.id, p.session]), [["p4", "Z"]], "always held for Y, not for Z");
    assert.equal(posts.length, 2);

    const [p4] = a.permissions.value;
    a.open("Y");
    void a.reply(p4, true, true);
    assert.equal(paths()[2], "/Z/permissions/p4", "the answer goes to who asked");
    sockets[2].onmessage(asks("p5", "Y"));
    await settled();
    assert.deepEqual(a.permissions.value.map((p) => p.id), ["p5"], "and allows nothing in the one that is open");
    assert.equal(posts.length, 3);
});

test("an assistant that was left listens to nobody and answers nothing", async (t) => {
    const a = assistant(t);
    void a.send("hello");
    a.close();
    posts[0].answer(200, { id: "X" });
    await settled();
    assert.deepEqual(listening(), []);

    const b = assistant(t);
    b.open("Y");
    const late = sockets[0].onmessage;
    late(asks("p1", "Y"));
    void b.reply(b.permissions.value[0], true, true);
    b.close();
    assert.deepEqual(listening(), []);
    late(asks("p2", "Y"));
    await settled();
    assert.deepEqual(paths(), ["/Y/permissions/p1"]);
});

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
