// The heat map's view: rows are values, columns are time, colour is how much.

import { byId, setText } from "./dom.js";
import { clock, plural, visible } from "./format.js";
import { options, showMessage } from "./heatforms.js";
import { listen } from "./heatinput.js";
import { placeOf } from "./heatcallout.js";
import { HeatLoader } from "./heatload.js";
import { HeatMap } from "./heatmap.js";
import { HeatPanel, leavesOf } from "./heatpanel.js";
import { findings } from "./heatfind.js";
import { drawFoundList } from "./heatlist.js";
import { drawComparedLegend, drawLegend } from "./heatscale.js";
import { drawTable } from "./heattable.js";
import { build, keyName, rowName } from "./heattree.js";
import { pair, usuals } from "./heatusual.js";
import { HeatView } from "./heatview.js";
import { cellWords, markWords, nameOf, rangeWords, scaleWords } from "./heatwords.js";

const times = [[900, "15 min"], [3600, "1 hour"], [21600, "6 hours"], [86400, "24 hours"], [604800, "7 days"]];
const shortest = 20, longest = 31 * 86400; // seconds
const columnWidth = 3; // px
const settle = 180; // ms until a zoom that ended is loaded

export class Heat {
  // now returns the server's time in seconds. onLink is called when the link changes.
  constructor({ now, onLink, onKey, ruleWords }) {
    Object.assign(this, { now, onLink });
    this.view = new HeatView();
    this.loader = new HeatLoader(now);
    this.frame = byId("heat-frame");
    this.map = new HeatMap(byId("heat-canvas"));
    this.panel = new HeatPanel(byId("heat-panel"), {
      onKey, ruleWords,
      onClose: () => { this.clearBrush(); this.resized(); this.frame.focus({ preventScroll: true }); },
      onZoom: (from, to) => { this.panel.close(); this.look(from, to); },
    });
    this.isShown = false;
    listen(this.frame, this);
    this.frame.addEventListener("focus", () => { this.cursor(); this.draw(); });
    new ResizeObserver(() => this.isShown && this.resized()).observe(this.frame);
    const on = (id, f, event = "click") => byId(id).addEventListener(event, f);
    on("heat-in", () => this.zoomBy(2));
    on("heat-out", () => this.zoomBy(0.5));
    on("heat-earlier", () => this.pan(-0.5));
    on("heat-later", () => this.pan(0.5));
    on("heat-back", () => this.back());
    on("heat-all", () => { this.view.unfolded = !this.view.unfolded; this.view.folds.clear(); this.map.zoom = 1; this.rebuild(); });
    on("heat-table-button", () => { this.view.table = !this.view.table; this.refresh(); this.resized(); });
    on("heat-time", (e) => { if (e.target.value) { this.view.remember(); [this.view.last, this.view.window] = [Number(e.target.value), null]; this.reload(); } }, "change");
    on("heat-colour", (e) => { this.view.colour = e.target.value; this.rebuild(); }, "change");
    on("heat-filter", (e) => { this.view.filter = e.target.value; this.rebuild(); this.reloadSoon(); }, "input");
    new MutationObserver(() => this.isShown && this.loader.data && this.paint()).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.isShown && this.loader.data && this.paint());
  }

  show(link) {
    this.isShown = true;
    if (link) this.view.fromText(link);
    byId("heat-filter").value = this.view.filter;
    this.refresh();
    this.resized();
    this.reload();
  }

  hide() { this.isShown = false; }

  // tick follows the present.
  async tick() {
    const step = this.loader.data?.step ?? 2;
    if (!this.isShown || this.loader.running || this.view.last === null || Date.now() - (this.asked ?? 0) < Math.min(15, Math.max(2, step / 2)) * 1000 - 500) return;
    this.asked = Date.now();
    if (this.loader.state !== "ready") { this.reload(); return; }
    const news = await this.loader.follow(this.view.times(this.now()), this.columns());
    if (news === "rows") this.rebuild();
    else if (news === "cells") { this.compare(); this.paint(); }
  }

  columns() { return Math.max(40, Math.min(1000, Math.floor(this.map.plotWidth / columnWidth))); }

  async reload() {
    clearTimeout(this.timer);
    this.asked = Date.now();
    this.loader.filter = this.view.filter;
    this.refresh();
    if (!await this.loader.load(this.view.times(this.now()), this.columns())) return;
    if (this.loader.data) this.rebuild();
    this.refresh();
    if (this.view.brush && !this.panel.isOpen) this.restoreBrush();
  }

  reloadSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.timer = 0; this.reload(); }, settle);
  }

  // look changes the time, draws what there is of it, and then loads the rest.
  look(from, to, remember = true) {
    const now = this.now(), length = Math.min(longest, Math.max(shortest, to - from));
    if (length !== to - from) [from, to] = [(from + to - length) / 2, (from + to + length) / 2];
    if (to > now) [from, to] = [now - length, now];
    this.view.look(from, to, now, remember && !this.timer);
    this.reloadSoon();
    this.draw();
  }

  rebuild() {
    const { data } = this.loader;
    if (!data) return;
    const units = data.units(), refused = data.knowsRefused();
    let colour = this.view.colour;
    if (!(units.includes(colour) || (colour === "refused" && refused))) colour = "unusual";
    this.unit = colour === "refused" || colour === "unusual" ? (units.includes("requests") ? "requests" : units[0]) : colour;
    this.measure = colour === "refused" ? "refused" : "low";
    this.colour = colour;
    this.compares = colour === "unusual";
    this.rows = this.compares ? pair(data) : [...data.rows.values()];
    this.compare();
    options(byId("heat-colour"), colour, [["unusual", "unusual"], ...units.map((u) => [u, visible(u, 30)]), ["refused", refused ? "refused" : "refused (not known)", !refused]]);
    this.map.resize();
    const { filter, folds, unfolded } = this.view;
    const chosen = this.view.brush?.names ?? [];
    const outstanding = [...this.rows.filter((row) => chosen.includes(`=${keyName(row)}`)), ...this.map.found.flatMap((f) => f.rows.filter((row) => !row.isRest).slice(0, f.rows.length > 3 ? 2 : 3))];
    this.list = build(this.rows, { unit: this.compares ? null : this.unit, measure: this.measure, filter, chosen: folds, outstanding, room: unfolded ? Infinity : this.map.room });
    if (this.map.brush && this.view.brush) this.map.brush.rows = this.brushRows() ?? this.map.brush.rows;
    this.paint();
    this.refresh();
  }

  // compare finds what is usual, and what is not.
  compare() {
    const { data } = this.loader;
    this.usual = this.compares ? usuals(data, this.rows) : null;
    this.map.found = this.compares ? findings(data, this.usual) : [];
    drawFoundList(byId("heat-found"), this.map.found, data, (finding) => this.openFinding(finding));
  }

  // paint makes the picture of the cells again.
  paint() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(`--${name}`).trim();
    this.style = Object.fromEntries(["panel", "ink", "dim", "faint", "rule", "chosen", "focus", "threshold", "bad", "mono", "sans"].map((name) => [name, of(name)]));
    const isDark = style.colorScheme.includes("dark");
    this.map.show(this.loader.data, this.list, this.measure, isDark, this.usual);
    if (this.compares) drawComparedLegend(byId("heat-legend"), isDark, this.rows.some((row) => row.time));
    else drawLegend(byId("heat-legend"), this.map.scale, isDark, (n) => scaleWords(n, this.unit), this.colour);
    if (this.map.cursor) {
      const row = this.list.findIndex((node) => node.id === this.map.cursor.id);
      this.map.cursor.row = row >= 0 ? row : Math.min(this.map.cursor.row, this.list.length - 1);
      if (this.list.length === 0) this.map.cursor = null;
    }
    if (this.view.table) this.drawTable();
    this.draw();
  }

  draw() {
    if (!this.pending) this.pending = requestAnimationFrame(() => { this.pending = 0; this.drawNow(); });
  }

  drawNow() {
    if (!this.isShown || !this.style || this.frame.hidden) return;
    this.map.window = this.view.times(this.now());
    this.map.draw(this.style);
    this.firstDrawn ??= performance.now();
  }

  resized() {
    const { width, height } = this.map;
    this.map.resize();
    if (this.map.width === width && this.map.height === height) return;
    if (this.loader.data) this.rebuild();
  }

  // refresh shows what is around the map.
  refresh() {
    const { state, data } = this.loader, isEmpty = data ? this.list?.length === 0 : false;
    const message = byId("heat-empty");
    byId("heat-bar").hidden = state === "off";
    this.frame.hidden = state === "off" || this.view.table;
    byId("heat-table").hidden = state === "off" || !this.view.table;
    byId("heat-table-button").setAttribute("aria-pressed", this.view.table);
    byId("heat-all").setAttribute("aria-pressed", this.view.unfolded);
    byId("heat-back").disabled = this.view.past.length === 0;
    showMessage(message, this.loader, isEmpty && (this.view.filter ? "No key passes the filter." : "No key was counted in this time."));
    const select = byId("heat-time"), { last } = this.view, [from, to] = this.view.times(this.now());
    const usual = times.map(([n, words]) => [String(n), `last ${words}`]);
    if (times.some(([n]) => n === last)) options(select, String(last), usual);
    else options(select, "", [...usual, ["", last === null ? rangeWords(from, to) : `last ${plural(Math.round(last / 60), "minute")}`]]);
    if (!this.hovered) this.say("");
    this.onLink(this.view.toText());
    if (this.view.table && data) this.drawTable();
  }

  drawTable() {
    this.map.window = this.view.times(this.now());
    drawTable(byId("heat-table"), this.map, this.colour === "refused" ? "Refused" : `Amounts in ${this.unit}`);
  }

  // --- what users do

  say(words, isSpoken = false) {
    const { data } = this.loader;
    const usual = data ? `${plural([...data.rows.values()].filter((r) => !r.isRest).length, "key")}${data.leftOut ? `, and ${plural(data.leftOut, "other value")} in “all other values”` : ""}. ${this.compares ? "Grey is usual, and white too little to be kept. " : ""}Drag over cells to see their keys.` : "";
    setText(byId("heat-words"), words || usual);
    if (isSpoken) setText(byId("heat-spoken"), words);
  }

  hover(hit) {
    this.hovered = Boolean(hit);
    if (!hit || !this.loader.data) { this.say(""); return; }
    if (hit.part === "axis") this.say(hit.marks.slice(0, 3).map(markWords).join(" · "));
    else if (hit.isRow) this.say(hit.part === "name" ? nameOf(this.list, hit.row) : cellWords(this.loader.data, this.list, hit.row, hit.at, this.unit));
    else this.say("");
    this.frame.classList.toggle("pointing", hit.part === "name" && hit.isRow);
  }

  click(hit) {
    if (!hit.isRow || hit.part === "axis") { this.clearBrush(); return; }
    const node = this.list[hit.row];
    if (hit.part === "cell") {
      this.map.cursor = { row: hit.row, at: hit.at, id: node.id };
      this.openCursor();
    } else if (node.children.length > 0) this.toggle(node);
    else this.open([node], 0, this.loader.data.columns);
  }

  toggle(node) {
    this.view.folds.delete(node.id);
    this.view.folds.set(node.id, !node.open);
    this.rebuild();
  }

  cursor() {
    if (this.map.cursor || !this.loader.data || this.list.length === 0) return this.map.cursor;
    const [from, to] = this.view.times(this.now());
    return this.map.cursor = { row: 0, at: (from + to) / 2, id: this.list[0].id };
  }

  // move moves the cursor by rows and columns, and with extend a brush from where it was.
  move(rows, columns, extend) {
    const cursor = this.cursor(), { data } = this.loader;
    if (!cursor) return;
    const start = this.brushStart ?? { row: cursor.row, at: cursor.at };
    const [from, to] = this.view.times(this.now());
    const last = data.columnOf(Math.min(to, data.to) - 0.001), first = Math.max(0, data.columnOf(from));
    const column = Math.max(first, Math.min(last, data.columnOf(cursor.at) + columns));
    const row = Math.max(0, Math.min(this.list.length - 1, cursor.row + rows));
    this.map.cursor = { row, at: data.timeOf(column) + data.step / 2, id: this.list[row].id };
    this.setBrush(extend ? start : null, this.map.cursor);
    this.brushStart = extend ? start : null;
    this.map.reveal();
    this.say(cellWords(data, this.list, row, this.map.cursor.at, this.unit), true);
    this.draw();
  }

  setBrush(start, end) {
    this.brushStart = this.view.brush = null;
    const { data } = this.loader;
    if (!start || !data) this.map.brush = null;
    else {
      const columns = [data.columnOf(start.at), data.columnOf(end.at)].sort((a, b) => a - b).map((i) => Math.max(0, Math.min(data.columns - 1, i)));
      this.map.brush = { rows: [start.row, end.row].sort((a, b) => a - b), columns, times: [data.timeOf(columns[0]), data.timeOf(columns[1] + 1)] };
      this.say(`${plural(this.map.brush.rows[1] - this.map.brush.rows[0] + 1, "row")}, ${clock(this.map.brush.times[0] * 1000)} to ${clock(this.map.brush.times[1] * 1000)}`);
    }
    this.draw();
  }

  clearBrush() {
    this.setBrush(null);
    this.onLink(this.view.toText());
  }

  // brushRows returns the places in the list of the rows that the link selects, or null.
  brushRows() {
    const places = this.view.brush.names.map((name) => this.list.findIndex((node) => rowName(node) === name));
    return places.includes(-1) ? null : places.sort((a, b) => a - b);
  }

  restoreBrush() {
    const { times } = this.view.brush, rows = this.loader.data && this.brushRows();
    if (!rows || times[0] >= this.loader.data.to || times[1] <= this.loader.data.from) return;
    this.setBrush({ row: rows[0], at: times[0] }, { row: rows[1], at: times[1] - 0.001 });
    this.openBrush();
  }

  openBrush() {
    const { brush } = this.map;
    if (!brush) return;
    this.view.brush = { names: brush.rows.map((i) => rowName(this.list[i])), times: brush.times, window: this.view.times(this.now()) };
    this.onLink(this.view.toText());
    this.open(this.list.slice(brush.rows[0], brush.rows[1] + 1), brush.columns[0], brush.columns[1] + 1);
  }

  // openFinding lists the keys of what stands out.
  openFinding(finding) {
    const rows = placeOf(this.list, finding);
    if (!rows) return;
    this.setBrush({ row: rows[0], at: finding.times[0] }, { row: rows[1], at: finding.times[1] - 0.001 });
    this.openBrush();
  }

  openCursor() {
    if (this.map.brush) { this.openBrush(); return; }
    const cursor = this.cursor();
    if (!cursor) return;
    const i = Math.max(0, Math.min(this.loader.data.columns - 1, this.loader.data.columnOf(cursor.at)));
    this.open([this.list[cursor.row]], i, i + 1);
  }

  toggleCursor() {
    const node = this.list[this.cursor()?.row];
    if (node?.children.length > 0) this.toggle(node);
  }

  open(nodes, from, to) {
    this.panel.open(this.loader.data, leavesOf(nodes), from, to, this.measure);
    this.panel.node.querySelector("h2").focus();
    this.draw();
  }

  // escape closes what is open, and reports whether something was.
  escape() {
    if (this.panel.isOpen) this.panel.close();
    else if (this.map.brush) this.clearBrush();
    else if (this.view.filter) { this.view.filter = byId("heat-filter").value = ""; this.rebuild(); this.reloadSoon(); } else return false;
    return true;
  }

  // zoom scales the time around x, moves it by dx, and scales rows that are too low for names.
  zoom(factor, x, dx, remember = true, y = null) {
    const [from, to] = this.view.times(this.now()), at = this.map.timeAt(Math.max(this.map.gutter, x));
    const moved = (-dx / this.map.plotWidth) * (to - from);
    this.look(at - (at - from) / factor + moved, at + (to - at) / factor + moved, remember);
    if (y !== null && this.list && (this.map.zoom > 1 || this.map.rowHeight < 14)) this.map.zoomRows(factor, y);
  }

  zoomBy(factor) {
    const at = this.frame.contains(document.activeElement) && this.map.cursor ? this.map.x(this.map.cursor.at) : this.map.gutter + this.map.plotWidth / 2;
    this.zoom(factor, at, 0, true, this.map.cursor ? this.map.y(this.map.cursor.row) : this.map.height / 2);
  }

  pan(part) { this.zoom(1, 0, -part * this.map.plotWidth); }

  back() { if (this.view.back()) this.reload(); }

  scrollTo(top) {
    this.map.top = top;
    this.map.clamp();
    this.draw();
  }
}
