// What is usual for a row of the heat map, and how many times more a column has of it: more
// requests, or more time for each.

import { Amounts } from "./heatdata.js";
import { split } from "./heattree.js";

// place returns the route and the parameter of a row.
const place = (row) => `${row.route}\n${split(row.route, row.key).parameter}`;

// pair returns the rows of the data. Rows that count the time of requests which others count become
// the time of those.
export function pair(data) {
  const counting = new Map(), partner = new Map(), rows = new Map();
  const all = [...data.rows.values()];
  for (const row of all) if (!row.isRest && row.unit === "requests") counting.set(place(row), row.rule);
  for (const row of all) if (!row.isRest && row.unit === "ms" && counting.has(place(row))) partner.set(row.rule, counting.get(place(row)));
  const idOf = (rule, row) => JSON.stringify(row.isRest ? [rule] : [rule, row.route, row.key]);
  for (const row of all) if (!partner.has(row.rule)) rows.set(idOf(row.rule, row), { ...row, time: null });
  for (const row of all) {
    const rule = partner.get(row.rule);
    if (!rule) continue;
    const id = idOf(rule, row), found = rows.get(id);
    if (found) found.time ??= row.amounts;
    else rows.set(id, { ...row, rule, unit: "requests", amounts: new Amounts(data.columns), time: row.amounts });
  }
  return [...rows.values()];
}

export const median = (values) => quantile(values, 0.5);

function quantile(values, part) {
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.floor(sorted.length * part)] ?? 0;
}

// usableColumns returns the columns that ended and have data.
export function usableColumns(data) {
  const found = [];
  for (let i = 0; i < data.columns; i++) {
    const a = data.timeOf(i), b = data.timeOf(i + 1);
    if (b <= data.now && !data.gaps.some(([from, to]) => from < b && to > a)) found.push(i);
  }
  return found;
}

const samples = 250;  // columns are enough for a median
const knownCells = 8; // that a row needs for a usual time of its own

// Usual has what is usual for the values of a parameter.
export class Usual {
  // rows are those of the parameter; the last may be the rest.
  constructor(data, rows) {
    this.columns = usableColumns(data);
    const every = Math.ceil(this.columns.length / samples);
    this.sample = this.columns.filter((_, n) => n % every === 0);
    this.rows = rows;
    this.keys = rows.filter((row) => !row.isRest);
    const cells = [];
    const some = Math.ceil(this.keys.length / samples);
    this.keys.forEach((row, n) => { if (n % some === 0) for (const i of this.sample) if (row.amounts.low[i] > 0) cells.push(row.amounts.low[i]); });
    this.typical = median(cells); // of a value that is among the largest
    // A value without a cell had less than each that has one.
    this.bound = new Float32Array(data.columns).fill(Infinity);
    for (const { amounts } of this.keys) {
      for (let i = 0; i < data.columns; i++) if (amounts.low[i] > 0 && amounts.high[i] < this.bound[i]) this.bound[i] = amounts.high[i];
    }
    const largest = this.columns.map((i) => this.keys.reduce((most, row) => Math.max(most, row.amounts.low[i]), 0));
    this.largest = Math.max(3 * median(largest), 2 * quantile(largest, 0.75)); // that a column has without being an exception
    this.hasTime = rows.some((row) => row.time);
    const low = total(data, rows, (row) => row.amounts), time = total(data, rows, (row) => row.time);
    Object.assign(this, { low, time, total: median(this.columns.map((i) => low[i])), totalTime: median(this.columns.map((i) => time[i])) });
    this.each = median(this.columns.filter((i) => low[i] > 0 && time[i] > 0).map((i) => time[i] / low[i]));
  }

  // more returns how many times more than usual each column has.
  more(low, isKey) {
    const usual = Math.max(median(this.sample.map((i) => low[i])), isKey ? this.typical : this.total / 50);
    return this.compared((i) => (usual > 0 ? low[i] / usual : 0));
  }

  // slower returns how many times longer than usual a request of each column took at least. Where a
  // value has no count of requests, it had less than the bound.
  slower(amounts, time, isKey) {
    if (!this.hasTime) return new Float32Array(time.length);
    const eachOf = (i) => {
      if (!(time[i] > 0)) return 0;
      const least = amounts.low[i] > 0 ? (isKey && amounts.high[i] > 0 ? amounts.high[i] : amounts.low[i]) : isKey ? this.bound[i] : Infinity;
      return time[i] / least;
    };
    const known = this.sample.filter((i) => amounts.low[i] > 0 && time[i] > 0);
    const own = known.length >= knownCells ? median(known.map(eachOf)) : this.each;
    const usual = isKey ? Math.max(own, this.each) : own; // what is known of a value is its least
    return this.compared((i) => (usual > 0 ? eachOf(i) / usual : 0));
  }

  compared(ratio) {
    const found = new Float32Array(this.bound.length);
    for (const i of this.columns) found[i] = ratio(i);
    return found;
  }
}

function total(data, rows, of) {
  const sum = new Float64Array(data.columns);
  for (const row of rows) {
    const amounts = of(row);
    if (amounts) for (let i = 0; i < sum.length; i++) sum[i] += amounts.low[i];
  }
  return sum;
}

// usuals returns what is usual, by the rule of paired rows.
export function usuals(data, rows) {
  const byRule = Map.groupBy(rows, (row) => row.rule);
  return new Map([...byRule].map(([rule, its]) => [rule, new Usual(data, its)]));
}
