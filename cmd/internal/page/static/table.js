// The list of hot keys. It makes rows for what is in sight and no more, so that a thousand
// keys cost as much as thirty.

import { el, replace, setAttribute, setText } from "./dom.js";
import { Spark } from "./chart.js";
import { age, amount, bounds, rate, span, visible } from "./format.js";

const modes = { limit: "limited", shadow: "shadow", wait: "waits", serve: "served", watch: "listed" };
const stages = { trial: "on trial", kept: "held", suspected: "suspected" };
export const modeWord = (key) => (key.hold ? stages[key.hold.stage] : key.spared ? "spared" : modes[key.mode] ?? key.mode);

// isLimited tells whether the key's limit may refuse requests.
export const isLimited = (key) => (key.hold ? key.hold.stage !== "suspected" : Boolean(key.limit) && !key.spared && key.mode !== "shadow");

const columns = [
  { name: "key", words: "Key", sort: (a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0) },
  { name: "line", words: "Last 2 minutes", class: "c-spark" },
  { name: "rate", words: "Rate", class: "r", sort: (a, b) => a.rate - b.rate, down: true },
  { name: "count", words: "Count", class: "r c-count", sort: (a, b) => a.low - b.low, down: true, title: "bounds of the count in the threshold's window: the least and the most that it can be" },
  { name: "over", words: "Hot at", class: "r c-hotat", sort: (a, b) => over(a) - over(b), down: true, title: "the threshold; sorts by how far a key is above it" },
  { name: "limit", words: "Limit", class: "r c-limit", sort: (a, b) => (a.limit ?? "").localeCompare(b.limit ?? "", "en", { numeric: true }) },
  { name: "admitted", words: "Admitted", class: "r c-admitted", title: "the rate that all instances together admit, and what their limits allow" },
  { name: "refused", words: "Refused", class: "r c-refusals", sort: (a, b) => a.refused_share - b.refused_share, down: true, title: "requests a second that all instances together refuse, of how many; sorts by their share" },
  { name: "mode", words: "Mode", class: "c-mode", sort: (a, b) => modeWord(a).localeCompare(modeWord(b)) },
  { name: "since", words: "Hot for", class: "r c-since", sort: (a, b) => b.sinceMs - a.sinceMs, down: true },
];

const over = (key) => (key.min > 0 ? key.low / key.min : 0);
const holdFor = 1000; // ms for which the order stands still under a pointer that moves

export class Table {
  constructor({ grid, head, body, store, onOpen, onShown, controlOf }) {
    Object.assign(this, { grid, head, body, store, onOpen, onShown, controlOf });
    this.sortBy = "rate";
    this.sortDown = true;
    this.filter = { text: "", rule: "", mode: "" };
    this.rows = [];      // keys in their order
    this.pool = new Map(); // id → row in sight
    this.free = [];
    this.selected = null; // id
    this.order = -1;
    this.numbers = -1; // of the store, when it was sorted
    this.moved = 0;
    this.drawn = 0;
    this.makeHead();
    grid.addEventListener("scroll", () => this.schedule(), { passive: true });
    grid.addEventListener("pointermove", () => this.hold(), { passive: true });
    new ResizeObserver(() => { this.height = 0; this.schedule(); }).observe(grid);
    body.addEventListener("click", (e) => {
      const row = e.target.closest(".row");
      if (row) { this.select(Number(row.dataset.id), false); this.onOpen(this.selected); }
    });
    grid.addEventListener("keydown", (e) => this.key(e));
    grid.addEventListener("focus", () => { if (this.indexOf(this.selected) < 0 && this.rows.length > 0) this.select(this.rows[0].id, false); });
  }

  makeHead() {
    this.headCells = columns.map((c, i) => {
      const cell = el("div", { role: "columnheader", class: c.class, "aria-colindex": i + 1, title: c.title },
        c.sort ? el("button", { type: "button", "data-sort": c.name, tabindex: "-1" }, c.words) : el("span", {}, c.words));
      cell.querySelector("button")?.addEventListener("click", () => this.sort(c.name));
      return cell;
    });
    replace(this.head, this.headCells);
    this.showSort();
  }

  static sorts() { return columns.filter((c) => c.sort).map((c) => [c.name, c.words]); }

  sort(name, down) {
    const column = columns.find((c) => c.name === name);
    if (!column?.sort) return;
    this.sortDown = down ?? (this.sortBy === name ? !this.sortDown : Boolean(column.down));
    this.sortBy = name;
    this.order = -1;
    this.showSort();
    this.schedule();
  }

  showSort() {
    columns.forEach((c, i) => {
      if (!c.sort) return;
      const chosen = c.name === this.sortBy;
      setAttribute(this.headCells[i], "aria-sort", chosen ? (this.sortDown ? "descending" : "ascending") : null);
      setText(this.headCells[i].firstChild, chosen ? `${c.words} ${this.sortDown ? "↓" : "↑"}` : c.words);
    });
  }

  setFilter(filter) {
    Object.assign(this.filter, filter);
    this.order = -1;
    this.grid.scrollTop = 0;
    this.schedule();
  }

  // hold keeps the order while a person aims at a row, and sorts when that has ended.
  hold() {
    this.moved = performance.now();
    clearTimeout(this.holding);
    this.holding = setTimeout(() => this.schedule(), holdFor + 20);
  }

  // schedule draws in the next frame, once however often it is asked.
  schedule() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.draw(); });
  }

  arrange() {
    const { text, rule, mode } = this.filter;
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [];
    for (const key of this.store.hot.values()) {
      if (rule && key.rule !== rule) continue;
      if (mode && modeWord(key) !== mode) continue;
      if (words.every((w) => key.search.includes(w))) rows.push(key);
    }
    const compare = columns.find((c) => c.name === this.sortBy).sort;
    const sign = this.sortDown ? -1 : 1;
    rows.sort((a, b) => sign * compare(a, b) || a.id - b.id);
    this.rows = rows;
    this.order = this.store.order;
    this.numbers = this.store.numbers;
  }

  draw() {
    const held = performance.now() - this.moved < holdFor;
    if (this.order < 0 || (!held && this.numbers !== this.store.numbers) || (this.order !== this.store.order && this.rows.some((k) => !this.store.hot.has(k.id)))) this.arrange();
    if (!this.height) {
      this.height = parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) || 34;
      this.viewHeight = this.grid.clientHeight;
      this.headHeight = this.head.offsetHeight;
    }
    setAttribute(this.grid, "aria-rowcount", this.rows.length + 1);
    const total = `${this.rows.length * this.height}px`;
    if (this.body.style.height !== total) this.body.style.height = total;
    const top = this.grid.scrollTop;
    const first = Math.max(0, Math.floor((top - this.headHeight) / this.height) - 2);
    const last = Math.min(this.rows.length, Math.ceil((top + this.viewHeight) / this.height) + 2);
    const inSight = new Set();
    for (let i = first; i < last; i++) inSight.add(this.rows[i].id);
    for (const [id, row] of this.pool) {
      if (inSight.has(id)) continue;
      this.pool.delete(id);
      if (row.node.contains(document.activeElement)) this.grid.focus({ preventScroll: true });
      row.node.remove();
      this.free.push(row);
    }
    const time = this.store.time();
    const wanted = [];
    for (let i = first; i < last; i++) {
      const key = this.rows[i];
      let row = this.pool.get(key.id);
      if (!row) {
        row = this.free.pop() ?? new Row();
        this.pool.set(key.id, row);
        this.body.append(row.node);
      }
      row.place(i, this.height);
      row.draw(key, time, key.id === this.selected, this.controlOf(key));
      if (!key.fetched) wanted.push(key.id);
    }
    this.free.length = Math.min(this.free.length, 40);
    this.drawn++;
    this.onShown(this.rows.length, wanted);
  }

  indexOf(id) { return this.rows.findIndex((k) => k.id === id); }

  select(id, reveal = true) {
    this.selected = id;
    const i = this.indexOf(id);
    if (i >= 0 && reveal) {
      const y = i * this.height;
      const head = this.headHeight;
      if (y < this.grid.scrollTop) this.grid.scrollTop = y;
      else if (y + this.height + head > this.grid.scrollTop + this.grid.clientHeight) this.grid.scrollTop = y + this.height + head - this.grid.clientHeight;
    }
    this.draw();
    const row = this.pool.get(id);
    setAttribute(this.grid, "aria-activedescendant", row ? row.node.id : null);
  }

  move(step) {
    if (this.rows.length === 0) return;
    const at = this.indexOf(this.selected);
    const to = at < 0 ? (step > 0 ? 0 : this.rows.length - 1) : Math.max(0, Math.min(this.rows.length - 1, at + step));
    this.hold();
    this.select(this.rows[to].id);
    this.grid.focus({ preventScroll: true });
  }

  key(e) {
    if (e.target.closest("button, input, select")) return;
    const page = Math.max(1, Math.floor(this.viewHeight / this.height) - 2);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -1e9, End: 1e9 }[e.key];
    if (step !== undefined && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); this.move(step); }
    if (e.key === "Enter" && this.selected !== null) { e.preventDefault(); this.onOpen(this.selected); }
  }
}

let rowNumber = 0;

class Row {
  constructor() {
    this.spark = new Spark();
    this.rule = el("span", { class: "ruleid" });
    this.text = el("bdi", { class: "key" });
    this.rate = el("div", { class: "r num rate", role: "gridcell", "aria-colindex": 3 });
    this.count = el("div", { class: "r num c-count", role: "gridcell", "aria-colindex": 4 });
    this.hotat = el("div", { class: "r num c-hotat", role: "gridcell", "aria-colindex": 5 });
    this.limit = el("div", { class: "r num c-limit", role: "gridcell", "aria-colindex": 6 });
    this.admitted = el("div", { class: "r num c-admitted", role: "gridcell", "aria-colindex": 7 });
    this.refused = el("div", { class: "r num c-refusals", role: "gridcell", "aria-colindex": 8 });
    this.tag = el("span", { class: "tag" });
    this.since = el("div", { class: "r num c-since", role: "gridcell", "aria-colindex": 10 });
    this.node = el("div", { class: "row", role: "row", id: `row-${rowNumber++}` },
      el("div", { class: "name", role: "gridcell", "aria-colindex": 1 }, this.text, this.rule),
      el("div", { class: "c-spark", role: "gridcell", "aria-colindex": 2 }, this.spark.node),
      this.rate, this.count, this.hotat, this.limit, this.admitted, this.refused,
      el("div", { class: "c-mode", role: "gridcell", "aria-colindex": 9 }, this.tag), this.since);
  }

  place(i, height) {
    if (this.index !== i || this.height !== height) {
      this.index = i;
      this.height = height;
      this.node.style.transform = `translateY(${i * height}px)`;
      setAttribute(this.node, "aria-rowindex", i + 2);
    }
  }

  draw(key, time, selected, control) {
    if (this.id !== key.id || this.shownKey !== key.key) {
      this.id = key.id;
      this.shownKey = key.key;
      this.node.dataset.id = key.id;
      setText(this.text, visible(key.key, 300));
      setAttribute(this.text, "title", visible(key.key, 600));
      setText(this.rule, visible(key.rule, 80));
    }
    setAttribute(this.node, "aria-selected", selected);
    setText(this.rate, (key.estimated ? "~" : "") + rate(key.rate, key.unit));
    setText(this.count, bounds(key.low, key.high, key.unit) + (key.window_seconds ? ` in ${span(key.window_seconds * 1000)}` : ""));
    setText(this.hotat, key.threshold ? thresholdWord(key) : "–");
    setText(this.limit, key.limit ? limitWord(key) : "–");
    setText(this.admitted, key.admitted || "–");
    setAttribute(this.admitted, "title", key.on_hot ?? "");
    setText(this.refused, key.refused || "–");
    setAttribute(this.refused, "title", key.refused);
    const word = control ? control.action : modeWord(key);
    setText(this.tag, word);
    setAttribute(this.tag, "title", key.hold?.words ?? "");
    setAttribute(this.tag, "class", `tag ${control ? (control.action === "block" ? "bad" : "warn") : isLimited(key) ? "hot" : ""}`.trim());
    setText(this.since, age(time - key.sinceMs));
    this.spark.draw(key, time);
  }
}

// Rates come as a plain number of the unit and a time, "10000000/10s".
export const thresholdWord = (key) => (key.kind === "rate" ? rateWord(key.threshold, key.unit) : key.threshold);
export const limitWord = (key) => rateWord(key.limit, key.unit);

function rateWord(text, unit) {
  const parts = /^(\d+)(\/.*)$/.exec(text);
  return parts && unit && unit !== "requests" ? amount(Number(parts[1]), unit).replace(".0 ", " ") + parts[2] : text;
}
