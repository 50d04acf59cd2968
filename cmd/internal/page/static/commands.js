// Commands for a terminal: this page only reads.

import { el, setText } from "./dom.js";
import { shellWord } from "./format.js";

// at returns the flags by which a command acts where this page looks. The URL has no password.
export function at(facts) {
  const url = facts.redis?.url;
  return ` --namespace ${facts.namespace}` + (url ? ` --redis ${/^[\w:/.,-]+$/.test(url) ? url : shellWord(url)}` : "");
}

// command shows a command with a button that copies it.
export function command(text) {
  const code = el("code", { class: "cmd", tabindex: "0" }, text);
  const button = el("button", { type: "button", class: "quiet copy", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    setText(button, await copy(text, code) ? "Copied" : "Press Ctrl+C");
    setTimeout(() => setText(button, "Copy"), 2000);
  });
  return el("div", { class: "command" }, code, button);
}

// copy falls back to the selection, because browsers have no clipboard over plain HTTP.
async function copy(text, code) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}
