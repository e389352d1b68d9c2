// Builds the page into dist/: hashed, minified assets and an index.html that names them,
// and fails when the page outgrows its budgets.
import { build } from "esbuild";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const home = dirname(fileURLToPath(import.meta.url));
const out = process.argv.slice(2).find((argument) => !argument.startsWith("--")) ?? join(home, "dist");

// Bytes after gzip. First view: what index.html loads before it can show a run list.
const BUDGET_FIRST_SCRIPT = 125 * 1024;
const BUDGET_ALL = 400 * 1024;

// xterm.js styles itself with <style> elements, which the Content-Security-Policy refuses.
// Its three places get a stand-in that writes to a constructed style sheet instead.
const XTERM_STYLE_PLACES = 3;
const xtermWithoutStyleElements = {
    name: "xterm-without-style-elements",
    setup(b) {
        b.onLoad({ filter: /@xterm\/xterm\/lib\/xterm\.mjs$/ }, async ({ path }) => {
            const text = await readFile(path, "utf8");
            let places = 0;
            const contents = text.replace(/[\w.]+\.createElement\("style"\)/g, () => {
                places++;
                return "adoptedStyle()";
            });
            if (places !== XTERM_STYLE_PLACES)
                throw new Error(`xterm.js makes ${places} style elements, expected ${XTERM_STYLE_PLACES}`);
            const from = JSON.stringify(join(home, "src/lib/adopted-style.ts"));
            return { contents: `import { adoptedStyle } from ${from};\n${contents}`, loader: "js" };
        });
    },
};

async function bundle() {
    return build({
        absWorkingDir: home,
        entryPoints: { page: "src/main.tsx", style: "src/styles/main.css" },
        bundle: true,
        outdir: join(out, "assets"),
        entryNames: "[name]-[hash]",
        chunkNames: "part-[hash]",
        format: "esm",
        splitting: true,
        minify: true,
        target: ["es2022", "chrome111", "firefox115"],
        jsx: "automatic",
        jsxImportSource: "preact",
        legalComments: "none",
        charset: "utf8",
        metafile: true,
        plugins: [xtermWithoutStyleElements],
        logLevel: "warning",
    });
}

/** The outputs that `name` pulls in before it runs: static imports, followed through. */
function loadedWith(outputs, name, seen = new Set()) {
    if (seen.has(name)) return seen;
    seen.add(name);
    for (const { path, kind } of outputs[name].imports)
        if (kind === "import-statement") loadedWith(outputs, path, seen);
    return seen;
}

async function gzipBytes(names) {
    let total = 0;
    for (const name of names) total += gzipSync(await readFile(join(home, name)), { level: 9 }).length;
    return total;
}

async function checkBudgets(outputs, entry) {
    const first = await gzipBytes(loadedWith(outputs, entry));
    const all = await gzipBytes(Object.keys(outputs));
    const kib = (n) => `${(n / 1024).toFixed(1)} KiB`;
    console.log(`first view ${kib(first)} of ${kib(BUDGET_FIRST_SCRIPT)} script, ` +
                `everything ${kib(all)} of ${kib(BUDGET_ALL)} (gzip)`);
    if (first > BUDGET_FIRST_SCRIPT || all > BUDGET_ALL) {
        console.error("the page is over its budget");
        process.exit(1);
    }
}

async function writeIndex(entry, style) {
    const template = await readFile(join(home, "src/index.html"), "utf8");
    const asset = (name) => `./assets/${name.split("/").pop()}`;
    const text = template.replace("./assets/page.js", asset(entry)).replace("./assets/page.css", asset(style));
    await mkdir(out, { recursive: true });
    await writeFile(join(out, "index.html"), text);
}

/** The shapes of src/protocol.ts as JSON, for tests of the server in other languages. */
async function writeProtocol() {
    const { outputFiles } = await build({
        absWorkingDir: home, entryPoints: ["src/protocol.ts"], bundle: true, format: "esm", write: false, logLevel: "warning" });
    const url = `data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`;
    const { DOCUMENTS, MESSAGES } = await import(url);
    await writeFile(join(out, "protocol.json"), `${JSON.stringify({ DOCUMENTS, MESSAGES }, null, 1)}\n`);
}

if (process.argv.includes("--protocol")) {
    await mkdir(out, { recursive: true });
    await writeProtocol();
    process.exit(0);
}
await rm(join(out, "assets"), { recursive: true, force: true });
const { outputs } = (await bundle()).metafile;
const entryOf = (source) => Object.keys(outputs).find((name) => outputs[name].entryPoint === source);
const entry = entryOf("src/main.tsx");
await writeIndex(entry, entryOf("src/styles/main.css"));
await checkBudgets(outputs, entry);
