// A stand-in for a <style> element that the Content-Security-Policy allows: its text goes
// into a constructed style sheet of the document.

/** An element that can be appended and removed like a <style>; set its textContent to CSS. */
export function adoptedStyle(): HTMLElement {
    const sheet = new CSSStyleSheet();
    const element = document.createElement("span");
    element.hidden = true;
    document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
    Object.defineProperty(element, "textContent", {
        set: (text: string) => sheet.replaceSync(text),
        get: () => "",
    });
    element.remove = () => {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((s) => s !== sheet);
        Element.prototype.remove.call(element);
    };
    return element;
}
