// highlight.js with the languages of the benchmark's tasks. Its tree of scopes is taken as
// data; its HTML output is never used.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cmake from "highlight.js/lib/languages/cmake";
import cpp from "highlight.js/lib/languages/cpp";
import css from "highlight.js/lib/languages/css";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import lua from "highlight.js/lib/languages/lua";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import type { Piece } from "./highlight";
import { lookup } from "./lookup";

const LANGUAGES = { bash, c, cmake, cpp, css, dockerfile, go, ini, java, javascript, json, lua, makefile, markdown, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);

const BY_EXTENSION: Record<string, string> = {
    sh: "bash", bash: "bash", c: "c", h: "c", cmake: "cmake", cc: "cpp", cpp: "cpp", cxx: "cpp", hh: "cpp", hpp: "cpp", css: "css",
    go: "go", mod: "go", ini: "ini", toml: "ini", cfg: "ini", java: "java", js: "javascript", mjs: "javascript", jsx: "javascript",
    json: "json", lua: "lua", mk: "makefile", md: "markdown", py: "python", rs: "rust", sql: "sql", ts: "typescript", tsx: "typescript",
    html: "xml", xml: "xml", svg: "xml", yml: "yaml", yaml: "yaml",
};

function languageOf(path: string): string | undefined {
    const name = path.slice(path.lastIndexOf("/") + 1).toLowerCase();
    if (name === "makefile") return "makefile";
    if (name === "dockerfile") return "dockerfile";
    if (name === "cmakelists.txt") return "cmake";
    return lookup(BY_EXTENSION, name.slice(name.lastIndexOf(".") + 1));
}

/** Collects text with the innermost scope; the interface is the one highlight.js calls. */
class Pieces {
    readonly pieces: Piece[] = [];
    private readonly scopes: string[] = [];

    addText(text: string): void {
        const scope = this.scopes.at(-1);
        if (text) this.pieces.push({ text, className: scope ? `hl-${scope.split(".")[0]}` : "" });
    }
    startScope(scope: string): void {
        this.scopes.push(scope);
    }
    endScope(): void {
        this.scopes.pop();
    }
    openNode(scope: string): void {
        this.startScope(scope);
    }
    closeNode(): void {
        this.endScope();
    }
    __addSublanguage(other: Pieces): void {
        this.pieces.push(...other.pieces);
    }
    finalize(): void {}
    toHTML(): string {
        return "";
    }
}

hljs.configure({ __emitter: Pieces } as never);

export function highlightLine(path: string, line: string): readonly Piece[] | null {
    const language = languageOf(path);
    if (!language) return null;
    const result = hljs.highlight(line, { language, ignoreIllegals: true });
    return (result._emitter as unknown as Pieces).pieces;
}
