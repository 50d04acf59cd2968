// Amounts by row and column, from answers of /api/v1/history.

const mostRows = 2000; // with those that came while the map was open

// Amounts of a row. A high that is not known is NaN, and so is a refused one.
export class Amounts {
  constructor(columns) {
    this.low = new Float32Array(columns);
    this.high = new Float32Array(columns);
    this.refused = new Float32Array(columns);
  }

  fill(value, from, to) {
    for (const a of [this.low, this.high, this.refused]) a.fill(value, from, to);
  }

  shift(by) {
    for (const a of [this.low, this.high, this.refused]) {
      a.copyWithin(0, by);
      a.fill(0, a.length - by);
    }
  }

  // add adds the columns from..to of another. Refused parts that are not known are left out.
  add(other, from = 0, to = this.low.length) {
    for (let i = from; i < to; i++) {
      this.low[i] += other.low[i];
      this.high[i] += other.high[i];
      if (!Number.isNaN(other.refused[i])) this.refused[i] = Number.isNaN(this.refused[i]) ? other.refused[i] : this.refused[i] + other.refused[i];
      else if (this.refused[i] === 0) this.refused[i] = NaN;
    }
  }

  // total returns the sums of the columns from..to.
  total(from, to) {
    let low = 0, high = 0, refused = 0, known = false;
    for (let i = from; i < to; i++) {
      low += this.low[i];
      high += this.high[i];
      if (!Number.isNaN(this.refused[i])) { refused += this.refused[i]; known ||= this.low[i] > 0 || this.high[i] > 0; }
    }
    return { low, high, refused: known ? refused : NaN };
  }
}

export class HeatData {
  // now is the time of the answer: the column that it is in has not ended.
  constructor(answer, now) {
    this.from = answer.from;
    this.to = answer.to;
    this.step = answer.step;
    this.columns = Math.max(1, Math.ceil((answer.to - answer.from) / answer.step));
    this.rows = new Map();
    this.marks = [];
    this.gaps = [];
    this.leftOut = 0;
    this.version = 0;
    this.merge(answer, now);
  }

  // joins reports whether an answer has the same columns, so that it can be merged.
  joins(answer) {
    return answer.step === this.step && (answer.from - this.from) % this.step === 0 && answer.from >= this.from && answer.from <= this.to && this.rows.size < mostRows;
  }

  // merge replaces the columns that an answer covers. It reports whether a row is new.
  merge(answer, now) {
    this.now = now;
    this.version++;
    const ahead = Math.ceil((answer.to - this.from) / this.step) - this.columns;
    if (ahead > 0) {
      for (const row of this.rows.values()) row.amounts.shift(ahead);
      this.from += ahead * this.step;
    }
    this.to = Math.max(this.to, answer.to);
    const first = (answer.from - this.from) / this.step;
    for (const row of this.rows.values()) row.amounts.fill(0, Math.max(0, first));
    let grown = false;
    const put = (found, isRest) => {
      const id = JSON.stringify(isRest ? [found.rule, found.unit] : [found.rule, found.unit, found.route, found.key]);
      let row = this.rows.get(id);
      if (row && row.route === "" && found.route) { // a rest without keys has no route
        row.route = found.route;
        grown = true;
      } else if (!row) {
        if (this.rows.size >= mostRows) return;
        row = { rule: found.rule, route: found.route, key: found.key, unit: found.unit || "requests", isRest, amounts: new Amounts(this.columns) };
        this.rows.set(id, row);
        grown = true;
      }
      const { low, high, refused } = row.amounts;
      for (const [column, l, h, r] of found.cells) {
        const i = first + column;
        if (i < 0 || i >= this.columns) continue;
        low[i] = l;
        high[i] = h ?? NaN;
        refused[i] = r ?? NaN;
      }
    };
    for (const row of answer.rows ?? []) put(row, false);
    for (const row of answer.rest ?? []) put(row, true);
    const marks = new Map([...this.marks, ...(answer.marks ?? [])].map((m) => [JSON.stringify(m), m]));
    this.marks = [...marks.values()].filter((m) => m.at >= this.from).sort((a, b) => a.at - b.at);
    this.gaps = [...this.gaps.map(([a, b]) => [a, Math.min(b, answer.from)]), ...(answer.gaps ?? [])].filter(([a, b]) => b > a && b > this.from);
    this.leftOut = answer.left_out ?? 0;
    return grown;
  }

  columnOf(at) { return Math.floor((at - this.from) / this.step); }
  timeOf(column) { return this.from + column * this.step; }

  // seconds returns the length of a column until now.
  seconds(column) { return Math.max(1, Math.min(this.step, this.now - this.timeOf(column))); }

  units() {
    const found = new Set();
    for (const row of this.rows.values()) found.add(row.unit);
    return [...found].sort();
  }

  knowsRefused() {
    for (const row of this.rows.values()) {
      if (row.amounts.low.some((n, i) => n > 0 && !Number.isNaN(row.amounts.refused[i]))) return true;
    }
    return false;
  }
}
