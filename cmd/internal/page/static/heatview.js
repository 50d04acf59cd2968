// What is looked at: the time, the colour, the filter and the folds, and their form in a link.

export class HeatView {
  constructor() {
    this.last = 3600;         // seconds that end now, or null
    this.window = null;       // [from, to] in Unix seconds, if last is null
    this.colour = "";         // a unit, or refused; empty for the first
    this.filter = "";
    this.folds = new Map();   // what was folded (false) or unfolded (true) by hand
    this.unfolded = false;    // all of it
    this.table = false;
    this.brush = null;        // what is selected: {names: [first, last], times, window}
    this.past = [];           // the times before, for back
  }

  // times returns the window now.
  times(now) {
    return this.last === null ? this.window : [now - this.last, now];
  }

  // look changes the time. The window before it is kept for back.
  look(from, to, now, remember = true) {
    if (remember) this.remember();
    if (to >= now - 1 && to - from >= 60) [this.last, this.window] = [Math.round(to - from), null];
    else [this.last, this.window] = [null, [from, to]];
  }

  remember() {
    const before = { last: this.last, window: this.window };
    const newest = this.past.at(-1);
    if (newest && newest.last === before.last && String(newest.window) === String(before.window)) return;
    this.past.push(before);
    if (this.past.length > 100) this.past.shift();
  }

  back() {
    const before = this.past.pop();
    if (before) Object.assign(this, before);
    return Boolean(before);
  }

  toText() {
    const p = new URLSearchParams();
    const window = this.last === null ? this.window : this.brush?.window; // a selection stays in sight
    if (window) {
      p.set("from", Math.round(window[0]));
      p.set("to", Math.round(window[1]));
    } else if (this.last !== 3600) p.set("last", this.last);
    if (this.colour) p.set("colour", this.colour);
    if (this.filter) p.set("filter", this.filter);
    if (this.unfolded) p.set("all", "1");
    if (this.table) p.set("table", "1");
    if (this.brush) {
      p.set("chosen", this.brush.times.join("-"));
      for (const name of this.brush.names) p.append("row", name);
    }
    for (const [id, isOpen] of [...this.folds].slice(-40)) p.append(isOpen ? "open" : "fold", id);
    return p.toString();
  }

  // fromText reads a link. What is not understood keeps its default.
  fromText(text) {
    const p = new URLSearchParams(text);
    const number = (name) => { const n = Number(p.get(name)); return p.has(name) && Number.isFinite(n) && n > 0 ? n : null; };
    const from = number("from"), to = number("to");
    if (from !== null && to > from) [this.last, this.window] = [null, [from, to]];
    else this.last = Math.min(number("last") ?? 3600, 31 * 86400);
    this.colour = p.get("colour") ?? "";
    this.filter = p.get("filter") ?? "";
    this.unfolded = p.get("all") === "1";
    this.table = p.get("table") === "1";
    const times = (p.get("chosen") ?? "").split("-").map(Number), names = p.getAll("row");
    this.brush = times.length === 2 && times[0] < times[1] && names.length === 2 ? { names, times, window: this.window } : null;
    this.folds = new Map([...p.getAll("open").map((id) => [id, true]), ...p.getAll("fold").map((id) => [id, false])]);
  }
}
