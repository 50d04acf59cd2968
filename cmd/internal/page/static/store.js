// What is known: a copy of the server's state, kept by a snapshot and what follows it.

export const maxPoints = 300; // of a key, one a second
const maxEvents = 200;

// Points of one key in a ring: time in seconds, rate, low, high (NaN: not known) and the share that
// was refused.
export class Line {
  constructor() {
    this.start = 0;
    this.length = 0;
    this.at = null; // its arrays are made with the first point
  }

  add(at, rate, low, high, refused) {
    if (!this.at) {
      this.at = new Float64Array(maxPoints);
      this.rates = new Float32Array(maxPoints);
      this.lows = new Float32Array(maxPoints);
      this.highs = new Float32Array(maxPoints);
      this.refused = new Float32Array(maxPoints);
    }
    const second = Math.floor(at);
    if (this.length > 0) {
      const last = this.index(this.length - 1);
      if (second < this.at[last]) return;
      if (second === this.at[last]) { this.set(last, second, rate, low, high, refused); return; }
    }
    if (this.length === maxPoints) this.start = (this.start + 1) % maxPoints;
    else this.length++;
    this.set(this.index(this.length - 1), second, rate, low, high, refused);
  }

  set(i, at, rate, low, high, refused) {
    this.at[i] = at;
    this.rates[i] = rate;
    this.lows[i] = low;
    this.highs[i] = high === null || high === undefined ? NaN : high;
    this.refused[i] = refused ?? 0;
  }

  index(i) { return (this.start + i) % maxPoints; }
}

export class Store {
  constructor() {
    this.ready = false;
    this.now = 0;      // the server's clock, ms
    this.heard = 0;    // ours, when that was
    this.second = 0;   // of the last points
    this.hot = new Map(); // id → key
    this.suspects = [];
    this.summary = { near: [], traffic: [] };
    this.controls = [];
    this.members = [];
    this.events = [];
    this.facts = {};
    this.order = 0;    // grows when keys come and go or change more than their counts
    this.numbers = 0;  // grows when anything of a key changes
  }

  // The server's time now.
  time() { return this.now + (performance.now() - this.heard); }

  snapshot(m) {
    this.ready = true;
    const old = new Map([...this.hot.values()].map((k) => [`${k.rule} ${k.key}`, k.line]));
    this.hot.clear();
    this.events = [];
    this.apply(m);
    for (const key of this.hot.values()) { // lines go on over a reconnect, without the gap's points
      const line = old.get(`${key.rule} ${key.key}`);
      if (line) key.line = line;
    }
  }

  // apply takes a change, of which a snapshot is the largest.
  apply(m) {
    this.now = m.now;
    this.heard = performance.now();
    const second = m.now / 1000;
    for (const id of m.gone ?? []) this.hot.delete(id);
    for (const row of m.put ?? []) {
      const key = Object.assign(this.hot.get(row.id) ?? { line: new Line(), fetched: false }, row);
      key.sinceMs = Date.parse(row.since);
      this.fold(key);
      this.hot.set(row.id, key);
      key.line.add(second, row.rate, row.low, row.high, row.refused_share);
    }
    for (const [id, rate, low, high, admitted, onHot, refused, share] of m.rates ?? []) {
      const key = this.hot.get(id);
      if (!key) continue;
      key.rate = rate; key.low = low; key.high = high; key.admitted = admitted; key.on_hot = onHot;
      key.refused = refused; key.refused_share = share;
      key.line.add(second, rate, low, high, share);
    }
    if (m.facts) this.facts = m.facts;
    if (Math.floor(second) > this.second && this.facts.redis?.connected) { // what did not change is a point as well
      for (const key of this.hot.values()) key.line.add(second, key.rate, key.low, key.high, key.refused_share);
    }
    this.second = Math.floor(second);
    if (m.put?.length || m.gone?.length) this.order++;
    if (m.put?.length || m.gone?.length || m.rates?.length) this.numbers++;
    if (m.suspects) this.suspects = m.suspects;
    if (m.summary) this.summary = m.summary;
    if (m.controls) this.controls = m.controls;
    if (m.members) { this.members = m.members; this.membersTotal = m.members_total; }
    for (const e of m.events ?? []) this.event(e);
  }

  // What the filter and the sort look at.
  fold(key) {
    key.search = `${key.rule} ${key.key}`.toLowerCase();
    key.perSecond = key.window_seconds > 0 ? 1 / key.window_seconds : 1;
    key.threshold_rate = key.min > 0 && key.window_seconds > 0 ? key.min / key.window_seconds : 0;
  }

  event(e) {
    if (this.events.some((known) => known.id === e.id)) return;
    this.events.unshift(e);
    if (this.events.length > maxEvents) this.events.length = maxEvents;
  }

  // Puts older points of a key in front of those that came since.
  history(id, points) {
    const key = this.hot.get(id);
    if (!key) return;
    const line = new Line();
    for (const [at, rate, low, high, refused] of points) line.add(at, rate, low, high, refused);
    const recent = key.line;
    for (let i = 0; i < recent.length; i++) {
      const j = recent.index(i);
      const high = recent.highs[j];
      line.add(recent.at[j], recent.rates[j], recent.lows[j], Number.isNaN(high) ? null : high, recent.refused[j]);
    }
    key.line = line;
    key.fetched = true;
  }
}
