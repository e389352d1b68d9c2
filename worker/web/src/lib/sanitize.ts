// The one place where text becomes markup: Markdown through marked, then DOMPurify, which
// hands back nodes. Everything else on the page is set as text.

import DOMPurify from "dompurify";
import { Marked } from "marked";

interface PolicyFactory {
    createPolicy(name: string, rules: { createHTML(text: string): string; createScriptURL(text: string): string }): object;
}

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

// Raw HTML in a message is shown as the text it is: nothing is lost, nothing acts.
const marked = new Marked({ gfm: true, breaks: false, async: false });
marked.use({ renderer: { html: ({ text }) => text.replace(/[&<>]/g, (c) => ENTITIES[c]!) } });

// DOMPurify hands its own text to the parser through this policy; nobody else gets it.
const factory = (globalThis as { trustedTypes?: PolicyFactory }).trustedTypes;
const policy = factory?.createPolicy("ssebench", { createHTML: (text) => text, createScriptURL: () => "" });

const TAGS = [
    "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre",
    "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

/** `text` as Markdown, in clean nodes: no images, no styles, links open elsewhere. What is too
 * deeply nested to be read is shown as the text it is. */
export function markdownNodes(text: string): DocumentFragment {
    try {
        return cleanNodes(text);
    } catch {
        const fragment = document.createDocumentFragment(), plain = document.createElement("pre");
        plain.textContent = text;
        plain.className = "wrap";
        fragment.append(plain);
        return fragment;
    }
}

function cleanNodes(text: string): DocumentFragment {
    const fragment = DOMPurify.sanitize(marked.parse(text) as string, {
        ALLOWED_TAGS: TAGS,
        ALLOWED_ATTR: ["href", "align", "start"],
        ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
        RETURN_DOM_FRAGMENT: true,
        ...(policy ? { TRUSTED_TYPES_POLICY: policy as never } : {}),
    });
    for (const link of fragment.querySelectorAll("a")) {
        link.target = "_blank";
        link.rel = "noopener noreferrer nofollow";
    }
    for (const table of fragment.querySelectorAll("table")) table.tabIndex = 0;
    return fragment;
}
