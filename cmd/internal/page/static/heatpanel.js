// What was chosen on the heat map: the keys of a rectangle, their rules, and what a limit would
// have refused.

import { el, replace } from "./dom.js";
import { amount, bounds, clock, dateTime, plural, span, visible } from "./format.js";

const mostKeys = 100;
const mostMarks = 20;

// refusedBy returns the least and the most that a limit of n per second, with a burst of a second,
// would have refused. Columns do not have the requests' times. The least is refused if the
// requests of a column are spread evenly, the most if all are in its first second.
export function refusedBy(n, amounts, data, from, to) {
  let least = 0, most = 0, levelOfLeast = n, levelOfMost = n;
  for (let i = from; i < to; i++) {
    const gain = n * data.seconds(i);
    const low = Math.min(amounts.low[i], levelOfLeast + gain);
    least += amounts.low[i] - low;
    levelOfLeast = Math.min(n, levelOfLeast + gain - low);
    const high = Math.min(amounts.high[i], levelOfMost + Math.min(n, gain)); // NaN if the high bound is not known
    most += amounts.high[i] - high;
    levelOfMost = Math.min(n, levelOfMost + gain - (high || 0));
  }
  return [least, Number.isNaN(most) ? null : Math.max(least, most)];
}

// leavesOf returns the rows of the data that nodes show: an open fold shows those below it.
export function leavesOf(nodes) {
  const shut = nodes.filter((n) => !n.open);
  return [...new Set((shut.length > 0 ? shut : nodes).flatMap((n) => n.leaves))];
}

export class HeatPanel {
  constructor(node, { onClose, onZoom, onKey, ruleWords }) {
    Object.assign(this, { node, onClose, onZoom, onKey, ruleWords });
    this.limit = "";
    this.explain = () => {}; // shows the rules again
  }

  get isOpen() { return !this.node.hidden; }

  close() {
    if (!this.isOpen) return;
    this.node.hidden = true;
    replace(this.node);
    this.onClose();
  }

  // open shows rows from one column to before another, with the time of each request if it is known.
  open(data, leaves, from, to, measure) {
    const start = data.timeOf(from), end = Math.min(data.now, data.timeOf(to));
    const chosen = leaves.map((row) => ({ row, ...row.amounts.total(from, to), time: row.time?.total(from, to).low ?? 0 })).filter((k) => k.low > 0 || k.high > 0 || Number.isNaN(k.high));
    const order = (k) => (measure === "refused" ? k.refused || 0 : k.low);
    chosen.sort((a, b) => a.row.isRest - b.row.isRest || order(b) - order(a));
    const keys = chosen.filter((k) => !k.row.isRest);
    const close = el("button", { type: "button", class: "quiet", "aria-label": "Close the selection (Esc)" }, "Close");
    close.addEventListener("click", () => this.close());
    const zoom = el("button", { type: "button", class: "quiet framed" }, "Zoom to this time");
    zoom.addEventListener("click", () => this.onZoom(start, end));
    const limit = el("input", { type: "number", min: "0", step: "any", inputmode: "decimal", id: "heat-limit", value: this.limit });
    const unit = keys[0]?.row.unit ?? "requests";
    const words = el("p", { class: "dim", id: "heat-limit-words" });
    const shown = chosen.slice(0, mostKeys), hasTime = chosen.some((k) => k.time > 0);
    const cells = shown.map(() => el("td", { class: "r would" }));
    const compute = () => {
      this.limit = limit.value;
      const n = Number(limit.value), isSet = limit.value !== "" && n >= 0;
      let least = 0, most = 0, demand = 0;
      for (const k of keys) {
        const [a, b] = isSet ? refusedBy(n, k.row.amounts, data, from, to) : [0, 0];
        least += a;
        most = b === null || most === null ? null : most + b;
        demand += k.low;
        const i = shown.indexOf(k);
        if (i >= 0) cells[i].textContent = isSet ? bounds(Math.round(a), b && Math.round(b), k.row.unit) : "";
      }
      words.textContent = !isSet ? "Without it, nothing is computed." : `It would have refused ${bounds(Math.round(least), most && Math.round(most), unit)} of ${amount(demand, unit)}. ` +
        (data.step > 1 ? `Columns are ${span(data.step * 1000)}: the least is for requests spread evenly over each, the most for all in its first second.` : "Bursts of a second pass.") +
        (keys.length < chosen.length ? " All other values are not included." : "");
    };
    limit.addEventListener("input", compute);
    const rules = [...new Set(chosen.map((k) => k.row.rule))];
    const explained = el("div");
    this.explain = () => replace(explained, rules.map((id) => el("p", { class: "rule-words" }, visible(this.ruleWords(id) ?? `${id}: not among the rules in force`, 600))));
    this.explain();
    const marks = data.marks.filter((m) => m.at >= start && m.at < end && (!m.key || chosen.some((k) => k.row.rule === m.rule && m.key.endsWith(k.row.key ?? "\n"))));
    replace(this.node,
      el("header", {}, el("h2", { tabindex: "-1" }, `${dateTime(start * 1000)} to ${clock(end * 1000)}: ${plural(keys.length, "key")}`), close),
      el("div", { class: "under" }, zoom),
      chosen.length === 0 ? el("p", { class: "dim" }, "No counts.") : [
        el("div", { class: "what-if" }, el("label", { for: "heat-limit" }, "What if each key's limit were"), limit, el("span", {}, unit === "requests" ? "/s" : `${unit}/s`)), words,
        el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "plain" },
          el("thead", {}, el("tr", {}, [["Key"], ["Amount", "r"], hasTime && ["Time each", "r"], ["Refused", "r"], ["Would be", "r"]].filter(Boolean).map(([text, name]) => el("th", { scope: "col", class: name }, text)))),
          el("tbody", {}, shown.map((k, i) => el("tr", {}, this.name(k.row),
            el("td", { class: "r" }, bounds(k.low, Number.isNaN(k.high) ? null : k.high, k.row.unit)),
            hasTime && el("td", { class: "r" }, k.time > 0 && k.low > 0 ? span(k.time / k.low) : "–"),
            el("td", { class: "r" }, Number.isNaN(k.refused) ? "–" : amount(k.refused, k.row.unit)), cells[i]))))),
        chosen.length > mostKeys && el("p", { class: "dim" }, `and ${plural(chosen.length - mostKeys, "more key", "more keys")} with less`),
        el("h3", {}, "What the rules say"),
        explained,
      ],
      marks.length > 0 && [el("h3", {}, "What happened"), el("dl", { class: "pairs" }, marks.slice(0, mostMarks).flatMap((m) =>
        [el("dt", {}, clock(m.at * 1000)), el("dd", {}, `${visible(m.kind, 20)}: ${m.key ? `${visible(m.key, 120)}: ` : ""}${visible(m.words, 300)}`)]))]);
    compute();
    this.node.hidden = false;
    this.node.scrollTop = 0;
  }

  // name links a key that is hot now to its detail.
  name(row) {
    if (row.isRest) return el("td", { class: "text dim" }, `all other values of ${visible(row.rule, 80)}`);
    const text = el("bdi", { class: "mono" }, visible(row.key, 300));
    const open = this.onKey(row);
    if (!open) return el("td", { class: "text" }, text);
    const button = el("button", { type: "button", class: "quiet link-like", title: "hot now: open the key" }, text);
    button.addEventListener("click", open);
    return el("td", { class: "text" }, button);
  }
}
