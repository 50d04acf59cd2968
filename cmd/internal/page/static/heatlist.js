// What stands out, as a list above the heat map.

import { el, replace } from "./dom.js";
import { clock, dateTime, plural } from "./format.js";

const mostGaps = 3;

export function drawFoundList(node, found, data, onOpen) {
  const gaps = data.gaps.map((times) => ({ times, isGap: true, name: "no data", words: "no aggregator wrote" }))
    .sort((a, b) => b.times[1] - b.times[0] - (a.times[1] - a.times[0])).slice(0, mostGaps);
  const lines = [...found, ...gaps].sort((a, b) => a.times[0] - b.times[0]);
  const shape = JSON.stringify(lines.map((f) => [f.times, f.words]));
  node.hidden = lines.length === 0;
  if (node.dataset.shape === shape) return; // what has the focus keeps it
  node.dataset.shape = shape;
  const isLong = data.columns * data.step > 86400;
  const time = (at) => (isLong ? dateTime(at * 1000).slice(5, 16) : clock(at * 1000).slice(0, data.step < 60 ? 8 : 5));
  const heading = found.length === 0 ? "Nothing stands out" : `${plural(found.length, "thing stands", "things stand")} out`;
  replace(node, el("h2", {}, heading), el("ol", {}, lines.map((f) => {
    const line = [el("b", { class: "number" }, f.isGap ? "!" : f.number), ` ${time(f.times[0])}–${time(f.times[1])} `, el("b", {}, f.name), ` ${f.words}`];
    if (f.isGap) return el("li", {}, el("span", { class: "gap" }, line));
    const button = el("button", { type: "button", class: "quiet" }, line);
    button.addEventListener("click", () => onOpen(f));
    return el("li", {}, button);
  })));
}
