// Lines over time: the rate, the part that is refused, the band between the bounds, the threshold and
// the limit.

import { svg, setAttribute } from "./dom.js";
import { clock, rate as rateWords, short } from "./format.js";

// paths returns the shapes of a line's last points in a box. Bounds count a whole window,
// so that they are drawn per second, as the rate is. Where the high bound is not known the
// band is open to the top.
function paths(key, line, from, to, box, most) {
  const x = (at) => box.left + (box.width * (at - from)) / (to - from);
  const y = (value) => box.top + box.height * (1 - Math.min(1, value / most));
  let path = "", band = "", open = "", refused = "";
  let run = [], cut = [];
  const flushRefused = () => {
    if (cut.length > 0) {
      if (cut.length === 1) cut.push(cut[0]);
      refused += `M${cut.map((p) => `${p.x},${p.top}`).join("L")}L${cut.map((p) => `${p.x},${p.passed}`).reverse().join("L")}Z`;
    }
    cut = [];
  };
  const flush = () => {
    if (run.length > 1) {
      const below = run.map((p) => `${p.x},${p.low}`).reverse().join("L");
      const above = run.map((p) => `${p.x},${p.high}`).join("L");
      if (run[0].isOpen) open += `M${above}L${below}Z`;
      else band += `M${above}L${below}Z`;
    }
  };
  let previous = -Infinity;
  for (let i = 0; i < line.length; i++) {
    const j = line.index(i);
    const at = line.at[j];
    if (at < from - 1) continue;
    const px = x(at).toFixed(1);
    const gap = at - previous > 3;
    if (gap || !(line.refused[j] > 0)) flushRefused();
    if (line.refused[j] > 0) cut.push({ x: px, top: y(line.rates[j]).toFixed(1), passed: y(line.rates[j] * (1 - line.refused[j])).toFixed(1) });
    path += `${gap ? "M" : "L"}${px},${y(line.rates[j]).toFixed(1)}${gap ? "h0" : ""}`; // h0: a lone point is a dot
    const isOpen = Number.isNaN(line.highs[j]);
    const point = { x: px, low: y(line.lows[j] * key.perSecond).toFixed(1), high: isOpen ? box.top : y(line.highs[j] * key.perSecond).toFixed(1), isOpen };
    if (gap || (run.length > 0 && run[run.length - 1].isOpen !== isOpen)) {
      if (!gap) run.push({ ...point, isOpen: run[0].isOpen, high: run[0].isOpen ? box.top : run[run.length - 1].high });
      flush();
      run = [];
    }
    run.push(point);
    previous = at;
  }
  flush();
  flushRefused();
  return { path, band, open, refused };
}

// peak is the top of the scale: above the line, the bounds, the threshold and a limit that is near.
function peak(key, line, from) {
  let most = key.threshold_rate || 0;
  for (let i = 0; i < line.length; i++) {
    const j = line.index(i);
    if (line.at[j] < from) continue;
    most = Math.max(most, line.rates[j], line.lows[j] * key.perSecond);
    if (!Number.isNaN(line.highs[j])) most = Math.max(most, line.highs[j] * key.perSecond);
  }
  if (key.allowed <= 4 * most) most = Math.max(most, key.allowed);
  return most > 0 ? most * 1.12 : 1;
}

export const sparkSeconds = 120;
const sparkBox = { left: 0, top: 1, width: 132, height: 24 };

export class Spark {
  constructor() {
    this.band = svg("path", { class: "c-band" });
    this.open = svg("path", { class: "c-open" });
    this.refused = svg("path", { class: "c-refused" });
    this.threshold = svg("path", { class: "c-threshold" });
    this.path = svg("path", { class: "c-line" });
    this.node = svg("svg", { class: "spark", viewBox: "0 0 132 26", preserveAspectRatio: "none", "aria-hidden": "true" },
      this.open, this.band, this.refused, this.threshold, this.path);
  }

  draw(key, now) {
    const to = now / 1000, from = to - sparkSeconds;
    const most = peak(key, key.line, from);
    const shapes = paths(key, key.line, from, to, sparkBox, most);
    setAttribute(this.path, "d", shapes.path);
    setAttribute(this.band, "d", shapes.band);
    setAttribute(this.open, "d", shapes.open);
    setAttribute(this.refused, "d", shapes.refused);
    const y = (sparkBox.top + sparkBox.height * (1 - key.threshold_rate / most)).toFixed(1);
    setAttribute(this.threshold, "d", key.threshold_rate > 0 ? `M0,${y}H132` : "");
  }
}

// A number that is round, at or below n.
function roundBelow(n) {
  const power = 10 ** Math.floor(Math.log10(n));
  for (const step of [5, 2, 1]) if (step * power <= n) return step * power;
  return power;
}

export class Chart {
  constructor() {
    this.node = svg("svg", { class: "chart", role: "img" });
    this.width = 0;
  }

  draw(key, now) {
    const width = Math.max(240, this.node.clientWidth || 400), height = 190;
    const to = now / 1000, from = to - 300;
    const most = peak(key, key.line, from);
    const box = { left: 46, top: 8, width: width - 50, height: height - 30 };
    const y = (value) => box.top + box.height * (1 - value / most);
    const shapes = paths(key, key.line, from, to, box, most);
    const parts = [];
    const step = roundBelow(most / 2.2);
    for (let value = 0; value <= most; value += step) {
      const at = Math.round(y(value)) + 0.5;
      parts.push(svg("path", { class: "c-grid", d: `M${box.left},${at}H${box.left + box.width}` }),
        svg("text", { class: "c-text", x: box.left - 6, y: at + 4, "text-anchor": "end" }, short(value)));
    }
    for (const minute of [4, 3, 2, 1, 0]) {
      const at = box.left + box.width * (1 - minute / 5);
      parts.push(svg("text", { class: "c-text", x: at, y: height - 6, "text-anchor": minute === 0 ? "end" : "middle" }, minute === 0 ? "now" : `${minute} min`));
    }
    parts.push(svg("path", { class: "c-open", d: shapes.open }), svg("path", { class: "c-band", d: shapes.band }), svg("path", { class: "c-refused", d: shapes.refused }));
    if (key.threshold_rate > 0) {
      const at = y(key.threshold_rate).toFixed(1);
      parts.push(svg("path", { class: "c-threshold", d: `M${box.left},${at}H${box.left + box.width}` }));
    }
    if (key.allowed > 0 && key.allowed <= most) {
      const at = y(key.allowed).toFixed(1);
      parts.push(svg("path", { class: "c-allowed", d: `M${box.left},${at}H${box.left + box.width}` }));
    }
    parts.push(svg("path", { class: "c-line", d: shapes.path }));
    setAttribute(this.node, "viewBox", `0 0 ${width} ${height}`);
    setAttribute(this.node, "aria-label", words(key, now));
    this.node.replaceChildren(...parts);
  }
}

// What a line shows, for those who do not see it.
function words(key, now) {
  let least = Infinity, most = 0, first = null;
  for (let i = 0; i < key.line.length; i++) {
    const j = key.line.index(i);
    first ??= key.line.at[j] * 1000;
    least = Math.min(least, key.line.rates[j]);
    most = Math.max(most, key.line.rates[j]);
  }
  if (first === null) return "no points yet";
  const threshold = key.threshold_rate > 0 ? `, hot at ${rateWords(key.threshold_rate, key.unit)}` : "";
  const limit = key.allowed > 0 ? `, limit ${rateWords(key.allowed, key.unit)}` : "";
  const refused = key.refused ? `, refused ${key.refused}` : "";
  return `Rate from ${clock(first)} to ${clock(now)}: now ${rateWords(key.rate, key.unit)}, between ${rateWords(least, key.unit)} and ${rateWords(most, key.unit)}${threshold}${limit}${refused}`;
}
