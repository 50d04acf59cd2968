// What stands out, as a list above the heat map.

import { el, replace } from "./dom.js";
import { clock, dateTime, plural } from "./format.js";

export function drawFoundList(node, found, data, onOpen) {
  const shape = JSON.stringify(found.map((f) => [f.times, f.words]));
  node.hidden = found.length === 0;
  if (node.dataset.shape === shape) return; // what has the focus keeps it
  node.dataset.shape = shape;
  const isLong = data.columns * data.step > 86400;
  const time = (at) => (isLong ? dateTime(at * 1000).slice(5, 16) : clock(at * 1000).slice(0, data.step < 60 ? 8 : 5));
  replace(node, el("h2", {}, `${plural(found.length, "thing stands", "things stand")} out`), el("ol", {}, found.map((f) => {
    const button = el("button", { type: "button", class: "quiet" }, el("b", { class: "number" }, f.number), ` ${time(f.times[0])}–${time(f.times[1])} `, el("b", {}, f.name), ` ${f.words}`);
    button.addEventListener("click", () => onOpen(f));
    return el("li", {}, button);
  })));
}
