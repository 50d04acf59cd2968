// What is around the heat map: lists to choose from, and messages in its place.

import { command } from "./commands.js";
import { el, replace } from "./dom.js";
import { visible } from "./format.js";

// options sets what a list offers, unless it does so already: a list that is open would close.
export function options(select, chosen, all) {
  const shape = JSON.stringify(all);
  if (select.dataset.shape !== shape) {
    select.dataset.shape = shape;
    replace(select, all.map(([value, words, disabled]) => el("option", { value, disabled }, words)));
  }
  select.value = chosen;
}

// showMessage says why there is no map, or that it is empty.
export function showMessage(node, { state, problem, data }, emptyWords) {
  const parts = {
    off: [el("h2", {}, "No history here"), el("p", {}, "The page of an aggregator with a history shows a map of the last days here: values over time, coloured by how much there was of them. This line in its file switches the history on:"), command("aggregator: {history: {}}")],
    bad: [el("h2", {}, "The history cannot be read"), el("p", {}, visible(problem, 300)), data && el("p", {}, "The map shows what was read before.")],
    loading: [el("p", {}, "Loading…")],
  }[state] ?? (emptyWords ? [el("p", {}, emptyWords)] : []);
  node.hidden = parts.length === 0;
  replace(node, parts);
}
