// One key, in full.

import { el, replace, setText } from "./dom.js";
import { Chart } from "./chart.js";
import { at, command } from "./commands.js";
import { amount, bounds, clock, dateTime, rate, shellWord, span, visible } from "./format.js";
import { isLimited, limitWord, modeWord, thresholdWord } from "./table.js";

export class Detail {
  constructor(node, store, { onClose, controlOf }) {
    Object.assign(this, { node, store, onClose, controlOf });
    this.id = null;
    this.more = null;
  }

  open(id) {
    const key = this.store.hot.get(id);
    if (!key) return;
    this.id = id;
    this.shown = { key: key.key, rule: key.rule };
    this.more = null;
    this.gone = false;
    this.build(key);
    this.node.hidden = false;
    document.body.classList.add("with-detail");
    this.draw();
    this.load();
  }

  close() {
    if (this.id === null) return;
    this.id = null;
    this.node.hidden = true;
    document.body.classList.remove("with-detail");
    replace(this.node);
    this.onClose();
  }

  build(key) {
    const close = el("button", { type: "button", class: "quiet", "aria-label": "Close the key (Esc)" }, "Close");
    close.addEventListener("click", () => this.close());
    this.chart = new Chart();
    this.tags = el("div", { class: "under" });
    this.pairs = el("dl", { class: "pairs" });
    this.acts = el("div");
    this.actsShape = null;
    this.origins = el("div");
    this.past = el("div");
    const commands = this.commands(key);
    replace(this.node,
      el("header", {}, el("h2", { tabindex: "-1" }, visible(key.key)), close),
      this.tags, this.acts, this.chart.node, legend(), this.pairs, this.origins, this.past, commands);
  }

  // A page that only reads says what to do in a terminal.
  commands(key) {
    if (this.act) return null;
    const word = shellWord(`${key.rule} ${key.key}`);
    if (word === null || word.length > 2000) return null;
    const where = at(this.store.facts);
    const actions = key.limit ? ["block", "pin", "allow"] : ["block"];
    return el("div", {}, el("h3", {}, "From a terminal"),
      actions.map((action) => command(`hotparam ${action} ${word} --for 10m --why 'INC-1234'${where}`)),
      command(`hotparam release ${word}${where}`));
  }

  // load asks for what the stream does not carry: where the requests come from.
  async load() {
    const id = this.id;
    if (id === null || this.loading) return;
    this.loading = true;
    try {
      const answer = await fetch(`/api/v1/view/key?id=${id}`, { cache: "no-store" });
      if (answer.ok && this.id === id) { this.more = await answer.json(); this.drawOrigins(); }
    } catch { /* the stream says what is wrong */ } finally { this.loading = false; }
  }

  draw() {
    if (this.id === null) return;
    const key = this.store.hot.get(this.id);
    const time = this.store.time();
    if (!key) {
      if (!this.gone) replace(this.tags, el("span", { class: "tag" }, "not hot any more"));
      this.gone = true;
      this.drawPast();
      return;
    }
    this.gone = false;
    this.chart.draw(key, time);
    const control = this.controlOf(key);
    replace(this.tags,
      el("span", { class: "tag" }, visible(key.rule, 80)),
      el("span", { class: key.hold ? isLimited(key) ? "tag hot" : "tag" : key.limit && !key.spared ? "tag hot" : "tag" }, modeWord(key)),
      key.usual && el("span", { class: "tag" }, "usual"),
      key.estimated && el("span", { class: "tag" }, "estimated from samples"),
      control && el("span", { class: `tag ${control.action === "block" ? "bad" : "warn"}` }, control.action));
    const shape = `${control?.action} ${Boolean(key.limit)} ${Boolean(key.hold)}`;
    if (this.act && shape !== this.actsShape) { // made once, so that the focus stays
      this.actsShape = shape;
      replace(this.acts, this.act.buttons(key));
    }
    const pairs = [
      ["Rate", rate(key.rate, key.unit)],
      ["Count", `${bounds(key.low, key.high, key.unit)}${key.window_seconds ? ` in ${span(key.window_seconds * 1000)}` : ""}${key.high === null ? " (counts were lost: the upper bound is not known)" : ""}`],
      ["Hot at", key.threshold ? thresholdWord(key) + least(key) : "not known"],
      ["Limit", key.limit ? `${limitWord(key)}${key.burst ? `, burst ${amount(key.burst, key.unit)}` : ""}` : key.hold ? visible(key.hold.words, 300) : "none: this key is listed only"],
      ["Admitted", key.admitted ? `${key.admitted}, by all instances` : key.limit || key.hold ? "not known" : "all: this key is listed only"],
      [key.mode === "shadow" ? "Would be refused" : "Refused", key.refused || (key.limit || key.hold ? "not known" : "none: this key is listed only")],
      ["Hot since", `${clock(key.sinceMs)}, for ${span(time - key.sinceMs)}`],
      ["Published by", visible(key.owner, 80)],
    ];
    if (key.on_hot) pairs.splice(5, 0, ["Answered by on_hot", `${key.on_hot}, by all instances`]);
    if (control) pairs.push(["Control", controlWords(control, time)]);
    replace(this.pairs, pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    this.drawPast();
  }

  drawOrigins() {
    const top = this.more?.hot?.top, window = this.more?.hot?.window_seconds;
    const within = (seconds) => (window ? ` in ${span(seconds * 1000)}` : ""); // routes and callers are reported once a second
    const parts = [];
    const outcomes = outcomeWords(this.more?.hot);
    if (outcomes) parts.push(el("p", { class: "dim" }, outcomes));
    const sampled = within(Math.max(2, window));
    for (const [name, words] of [["routes", `Routes${sampled}`], ["instances", `Instances${within(window)}`], ["callers", `Callers${sampled}`]]) {
      if (!top?.[name]?.length) continue;
      parts.push(el("h3", {}, words), el("table", { class: "origins" }, el("tbody", {}, top[name].map((o) =>
        el("tr", {}, el("td", {}, visible(o.name, 300)), el("td", {}, bounds(o.low, o.high, ""))))))); 
    }
    if (top?.explains) parts.push(el("p", { class: "dim" }, `Explains ${top.explains} more specific keys, which are hot only because of this one.`));
    replace(this.origins, parts);
  }

  drawPast() {
    const past = this.store.events.filter((e) => e.key === this.shown.key && e.rule === this.shown.rule).slice(0, 8);
    const shape = past.map((e) => e.id).join();
    if (shape === this.pastShape) return;
    this.pastShape = shape;
    replace(this.past, past.length ? [el("h3", {}, "Events"), el("dl", { class: "pairs" }, past.flatMap((e) =>
      [el("dt", { title: dateTime(Date.parse(e.at)) }, clock(Date.parse(e.at))), el("dd", {}, `${e.type}${e.why ? `: ${visible(e.why, 300)}` : ""}`)]))] : []);
  }
}

// outcomeWords tells what became of a key's requests since it became hot.
function outcomeWords(hot) {
  const o = hot?.outcomes;
  if (!o || o.passed + o.refused + o.served === 0) return "";
  const n = (x) => x.toLocaleString("en");
  return `Since it became hot, ${n(o.refused)} of ${n(o.passed + o.refused + o.served)} requests ${hot.mode === "shadow" ? "would have been" : "were"} refused`
    + `${o.waited ? `, ${n(o.waited)} waited` : ""}${o.served ? `, ${n(o.served)} were answered by on_hot` : ""}.`;
}

function least(key) {
  return key.kind && key.kind !== "rate" && key.min ? `, and ${amount(key.min, key.unit)} at least` : "";
}

export function controlWords(c, now) {
  const who = [c.by && visible(c.by, 128), c.claimed && `claims to be ${visible(c.claimed, 128)}`].filter(Boolean).join(", ");
  return `${c.action} for ${span(Date.parse(c.until) - now)} more${who ? ` by ${who}` : ""}${c.why ? `: ${visible(c.why, 256)}` : ""}`;
}

function legend() {
  const sample = (shape, words) => {
    const item = el("li");
    const ns = "http://www.w3.org/2000/svg";
    const node = document.createElementNS(ns, "svg");
    node.setAttribute("viewBox", "0 0 22 10");
    node.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(ns, "path");
    path.setAttribute("class", shape);
    path.setAttribute("d", shape === "c-band" || shape === "c-refused" ? "M0,1H22V9H0Z" : "M0,5H22");
    node.append(path);
    item.append(node, words);
    return item;
  };
  return el("ul", { class: "legend" }, sample("c-line", "rate"), sample("c-band", "bounds of the count, per second"), sample("c-refused", "refused"), sample("c-threshold", "hot at"), sample("c-allowed", "limit"));
}
