// The heat map in words: rows, cells and marks.

import { amount, bounds, clock, dateTime, rate, visible } from "./format.js";

// nameOf returns the path of a row of the list.
export function nameOf(list, row) {
  const path = [];
  for (let i = row, depth = Infinity; i >= 0 && depth > 0; i--) {
    if (list[i].depth < depth) { path.unshift(list[i].label); depth = list[i].depth; }
  }
  return path.join(" › ") + (list[row].dim ? ` (${list[row].dim})` : "");
}

// cellWords returns the amounts of a row in the column at a time.
export function cellWords(data, list, row, at, unit) {
  const i = data.columnOf(at);
  if (i < 0 || i >= data.columns || row >= list.length) return "";
  const time = `${timeWords(data.timeOf(i), data)}–${clock(Math.min(data.now, data.timeOf(i + 1)) * 1000)}`;
  if (data.gaps.some(([a, b]) => a <= at && at < b)) return `${time}: no data, because no aggregator wrote`;
  const sum = list[row].amounts(data).total(i, i + 1);
  const much = `${bounds(sum.low, Number.isNaN(sum.high) ? null : sum.high, unit)}${unit === "requests" ? " requests" : ""} (${rate(sum.low / data.seconds(i), unit)})`;
  return `${nameOf(list, row)}, ${time}: ${sum.low > 0 || sum.high > 0 ? much : "nothing"}${sum.refused > 0 ? `, ${amount(sum.refused, unit)} refused` : ""}`;
}

export const markWords = (m) => `${clock(m.at * 1000)} ${visible(m.kind, 20)}: ${m.key ? `${visible(m.key, 80)}: ` : ""}${visible(m.words, 200)}`;

// timeWords returns a time, with its day if the data has more than one.
export const timeWords = (at, data) => (data.columns * data.step > 86400 ? dateTime(at * 1000).slice(5) : clock(at * 1000));

// rangeWords returns a time for a list to choose from.
export function rangeWords(from, to) {
  const a = dateTime(from * 1000), b = dateTime(to * 1000);
  const n = to - from < 600 ? 19 : 16;
  return `${a.slice(5, n)} to ${b.slice(a.slice(0, 10) === b.slice(0, 10) ? 11 : 5, n)}`;
}

// scaleWords returns a value of the legend.
export const scaleWords = (n, unit) => (n > 0 && n < 1 ? `${Number(n.toPrecision(1))}${unit === "requests" ? "" : ` ${unit}`}/s` : rate(n >= 1 ? Number(n.toPrecision(2)) : n, unit));
