// The page's own rules, without a browser: diffs, similarity, dialogs, logs, rates, streams.
import test from "node:test";
import assert from "node:assert/strict";
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const LIB = fileURLToPath(new URL("../../../worker/web/src/lib/", import.meta.url));

async function load(name) {
    const { outputFiles } = await build({ entryPoints: [`${LIB}${name}.ts`], bundle: true, format: "esm", write: false });
    return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

const { parseDiff, similarity, unquote } = await load("diff");
const { Dialog } = await load("dialog");
const { ansiSpans, plainText } = await load("ansi");
const { wilson, buildMatrix } = await load("stats");
const { readEntries } = await load("entries-stream");
const { Heights } = await load("heights");
const { misfit } = await load("shape");
const { HEALTH } = await (async () => {
    const { outputFiles } = await build({ entryPoints: [`${LIB}../protocol.ts`], bundle: true, format: "esm", write: false });
    return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
})();

const diffOf = (path, removed, added) =>
    `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n@@ -1,${removed.length} +1,${added.length} @@\n${removed.map((l) => `-${l}\n`).join("")}${added.map((l) => `+${l}\n`).join("")}`;

test("diffs", () => {
    const cases = [
        ["a line that looks like a header", diffOf("q.sql", ["-- old"], ["-- new", "++ x"]), [{ path: "q.sql", additions: 2, deletions: 1 }]],
        ["quoted name", 'diff --git "a/caf\\303\\251.c" "b/caf\\303\\251.c"\nnew file mode 100644\n--- /dev/null\n+++ "b/caf\\303\\251.c"\n@@ -0,0 +1 @@\n+x\n', [{ path: "café.c", additions: 1, deletions: 0, status: "added" }]],
        ["name with spaces", diffOf("a b/c d.c", ["x"], ["y"]), [{ path: "a b/c d.c", additions: 1, deletions: 1 }]],
        ["deleted", "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n", [{ path: "x", status: "deleted", deletions: 1 }]],
        ["renamed without changes", "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", [{ path: "y", oldPath: "x", status: "renamed" }]],
        ["binary", "diff --git a/i.png b/i.png\nBinary files a/i.png and b/i.png differ\n", [{ path: "i.png", additions: 0, deletions: 0 }]],
        ["empty", "", []],
    ];
    for (const [label, text, expected] of cases) {
        const files = parseDiff(text);
        assert.equal(files.length, expected.length, label);
        expected.forEach((want, i) => { for (const [key, value] of Object.entries(want)) assert.deepEqual(files[i][key], value, `${label}: ${key}`); });
    }
    assert.equal(unquote('"a\\tb\\"c\\\\"'), 'a\tb"c\\');
    const names = (header) => parseDiff(`diff --git ${header}\n`)[0].path;
    assert.equal(names('"a/x\\"y" "b/x\\"y"'), 'x"y');
    assert.equal(names('a/x "b/y\\tz"'), "y\tz", "one name quoted, the other not");
    assert.equal(parseDiff("--- a/x\n+++ b/x\t2026-01-01\r\n")[0].path, "x", "a time behind a tab");
    const [file] = parseDiff("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -5,2 +7,3 @@\n a\n-b\n+c\n+d\n\\ No newline at end of file\n");
    assert.deepEqual(file.hunks[0].lines.map((l) => [l.kind, l.oldNumber, l.newNumber]), [["context", 5, 7], ["delete", 6, null], ["add", null, 8], ["add", null, 9], ["note", null, null]]);
});

test("a patch's longest lines take no more than their length", { timeout: 20_000 }, () => {
    const n = 1_000_000;
    assert.equal(unquote(`"${"a".repeat(n)}"`).length, n);
    for (const header of [`diff --git ${'"'.repeat(n)}`, `diff --git "${"\\".repeat(n)}"`, `--- ${"\t".repeat(n)}\r`, `+++ ${"\t".repeat(n)}\r`])
        parseDiff(`diff --git a/x b/x\n${header}\n@@ -1 +1 @@\n-a\n+b\n`);
});

test("words that every object knows are words like others", async () => {
    const { lookup } = await load("lookup");
    const { readPart } = await load("conversation");
    for (const word of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
        assert.equal(lookup({ a: 1 }, word), undefined, word);
        assert.equal(readPart({ type: "tool", callID: "c", tool: "t", state: { status: word } }).status, "running", word);
    }
    assert.equal(lookup({ a: 1 }, "a"), 1);
});

test("similarity", () => {
    const score = (a, b) => similarity(parseDiff(a), parseDiff(b));
    assert.equal(score(diffOf("a", ["x"], ["y"]), diffOf("a", ["x"], ["  y "])), 100, "blanks at the ends do not count");
    assert.equal(score(diffOf("a", ["x"], ["y"]), diffOf("b", ["x"], ["y"])), 0, "another file is another change");
    assert.equal(score(diffOf("a", [], ["y", "y"]), diffOf("a", [], ["y"])), 50, "repeated lines count");
    assert.equal(score("", diffOf("a", ["x"], ["y"])), null);
});

test("a dialog counts each entry once and finishes tools in place", () => {
    const dialog = new Dialog();
    const entries = [
        { seq: 0, ts: "", type: "init", data: {} }, { seq: 1, type: "message", content: "hi", tokens: { in: 5, out: 2 } },
        { seq: 2, type: "tool", tool_id: "a", name: "Bash", status: "running", args: { command: "ls" } },
        { seq: 3, type: "tool", tool_id: "b", name: "Read", status: "running" },
        { seq: 4, type: "tool", tool_id: "a", name: "Bash", status: "error", error: "no" },
    ];
    assert.equal(dialog.add(entries), true);
    assert.equal(dialog.add(entries), false, "a repetition adds nothing");
    assert.deepEqual(dialog.rows.map((row) => row.seqs), [[0], [1], [2, 4], [3]]);
    assert.equal(dialog.rows[2].entry.status, "error");
    assert.deepEqual(dialog.rows[2].entry.args, { command: "ls" }, "the end takes the start's arguments");
    assert.equal(dialog.indexOf(4), 2);
    assert.deepEqual(dialog.figures, { turns: 1, tools: 2, errors: 1, tokens: dialog.totals, durationMs: null });
    dialog.add([{ seq: 8, type: "complete", status: "success", turns: 7, duration_ms: 9, total_tokens: { in: 50, out: 20 } }]);
    assert.deepEqual(dialog.figures, { turns: 1, tools: 2, errors: 1, tokens: { in: 50, out: 20 }, durationMs: 9 }, "turns as their headings count them");
    assert.deepEqual(dialog.totals, { in: 5, out: 2, messages: 1, tools: 2, errors: 1 });
    for (const hostile of [null, 1, "x", {}, { seq: "1" }, { seq: NaN }, { seq: 9, type: "message", content: { a: 1 }, tokens: "x" }, { seq: 10, type: 5 }, { seq: 11, type: "tool", args: 7, result: [] }])
        assert.doesNotThrow(() => dialog.add([hostile]));
    assert.equal(dialog.rows.length, 8, "what has a number is shown, the rest is not");
});

test("log lines show colours and drop everything that could act", () => {
    assert.deepEqual(ansiSpans("\x1b[31mred\x1b[0m plain"), [{ text: "red", className: "fg1" }, { text: " plain", className: "" }]);
    assert.deepEqual(ansiSpans("10%\r55%\r100%").map((s) => s.text), ["100%"]);
    for (const hostile of ["\x1b]52;c;aGk=\x07", "\x1b]0;title\x1b\\", "\x1bP+q\x1b\\", "\x1b[6n", "\x1b[200~", "\x1bc", "\x9b31m", "\x07", "\x00"])
        assert.doesNotMatch(plainText(`a${hostile}b`), /[\x00-\x1f\x7f-\x9f]/, JSON.stringify(hostile));
    assert.equal(plainText("a\x1b]52;c;aGk=\x07b"), "ab");
});

test("a log that never ends keeps its newest lines, and not more than fit", async () => {
    Object.assign(globalThis, { document: { hidden: true, documentElement: { dataset: {} }, baseURI: "http://x/", addEventListener() {} }, location: new URL("http://x/"), addEventListener() {}, history: {}, matchMedia: () => ({ matches: false, addEventListener() {} }) });
    const { Lines } = await load("../stores/logs");
    const log = new Lines(), settled = () => new Promise((done) => setTimeout(done, 150));
    for (let round = 0; round < 5; round++) {
        for (let i = 0; i < 50_000; i++) log.push(`line ${round * 50_000 + i}`);
        await settled();
    }
    assert.equal(log.total, 250_000);
    assert.ok(log.lines.length <= 75_000 && log.lines.length > 60_000, `${log.lines.length} lines are kept`);
    assert.equal(log.lines[0], `line ${log.dropped}`);
    assert.equal(log.lines.at(-1), "line 249999");
    const long = new Lines();
    for (let i = 0; i < 60; i++) long.push("x".repeat(1_000_000));
    await settled();
    assert.ok(long.lines.reduce((n, line) => n + line.length, 0) <= 15_000_000, "long lines count by their length");
    assert.equal(long.total, 60);
});

test("rates", () => {
    const near = (a, b) => assert.ok(Math.abs(a - b) < 0.001, `${a} is not ${b}`);
    near(wilson(5, 10).low, 0.2366);
    near(wilson(5, 10).high, 0.7634);
    near(wilson(0, 5).low, 0);
    const run = (grade, more) => ({ id: "r", taskId: "t", model: "m", agent: "a", grade, spend: 1, ...more });
    const matrix = buildMatrix([run("passed"), run("failed"), run("error"), run(null), run("passed", { referenceRun: true, model: "none" })], "");
    assert.deepEqual([matrix.all.graded, matrix.all.passed, matrix.all.errors, matrix.all.open, matrix.all.spend], [2, 1, 1, 1, 4]);
    assert.equal(matrix.reference.get("t").passed, 1, "reference runs stand apart");
});

test("a stream of entries, one a line, is read whole and in pieces, wherever it is cut", async () => {
    const entries = Array.from({ length: 900 }, (_, i) => ({ seq: i, type: "tool", args: [{ a: ",\n" }, { seq: i }], result: `"},\n{\"seq\":${"ü🎉".repeat(i % 90)}` }));
    const text = `{"entries":[${entries.map((entry) => JSON.stringify(entry)).join(",\n")}],"truncated":true}`;
    for (const size of [1 << 20, 70_001, 999]) {
        const bytes = new TextEncoder().encode(text);
        const body = new ReadableStream({ start(c) { for (let at = 0; at < bytes.length; at += size) c.enqueue(bytes.slice(at, at + size)); c.close(); } });
        const pieces = [];
        let rest = {};
        for await (const piece of readEntries(new Response(body))) { pieces.push(piece.entries); rest = piece.rest; }
        assert.deepEqual(pieces.flat(), entries, `pieces of ${size}`);
        assert.ok(pieces.length > 1, `pieces of ${size}`);
        assert.equal(rest.truncated, true);
    }
    const one = [];
    for await (const piece of readEntries(new Response(JSON.stringify({ entries })))) one.push(piece.entries);
    assert.deepEqual(one, [entries], "without lines it is one piece");
    await assert.rejects(async () => { for await (const _ of readEntries(new Response('{"error":"x"}'))); });
});

test("heights of 200,000 rows", () => {
    const heights = new Heights(20);
    heights.resize(200_000);
    assert.equal(heights.total, 4_000_000);
    heights.set(10, 120);
    assert.equal(heights.top(11), 320);
    assert.equal(heights.at(319), 10);
    assert.equal(heights.at(320), 11);
    heights.resize(400_000);
    assert.equal(heights.total, 8_000_100, "growing keeps what was measured");
});

test("answers are checked against their description", () => {
    const good = { status: "ok", runner: true, backend: null };
    assert.equal(misfit(HEALTH, good), null);
    assert.equal(misfit(HEALTH, { ...good, runner: "yes" }), "answer.runner");
    assert.equal(misfit(HEALTH, []), "answer");
});
