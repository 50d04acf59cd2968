// What stands out in the time that the heat map shows: values with many times their usual
// requests, alone or together, and requests that take longer.

import { amount, plural, rate, span, visible } from "./format.js";
import { median } from "./heatusual.js";

const mostFound = 6;
const longest = 0.25; // of the time shown: what is longer is no exception
const bridge = 3;     // columns between two parts of a time
const together = 5;   // values that begin and end at once
const share = 0.3;    // of the usual total, which what stands out adds at least

// findings returns what stands out, in the order of time. Usual is by rule.
export function findings(data, usual) {
  const all = [...usual.values()].flatMap((u) => ofGroup(data, u));
  for (const f of all) f.weight = f.excess / (f.to - f.from) / (f.kind === "slow" ? f.usual.totalTime : f.usual.total);
  return all.filter((f) => f.weight >= share && f.to - f.from <= longest * f.usual.columns.length).sort((a, b) => b.weight - a.weight).slice(0, mostFound).sort((a, b) => a.from - b.from)
    .map((f, i) => Object.assign(f, { number: i + 1, times: [data.timeOf(f.from), Math.min(data.now, data.timeOf(f.to))] }));
}

function ofGroup(data, u) {
  const rest = u.rows.find((row) => row.isRest);
  const bursts = u.keys.flatMap((row) => {
    const { low } = row.amounts;
    return runs(u.more(low, true), 4, 2).filter((r) => mostOf(low, r) > u.largest).map((r) => ({ ...r, rows: [row], excess: excessOf(low, r, u) })).filter((r) => matters(r, u.total));
  });
  const found = [];
  // Values that begin and end at once are one finding.
  const clusters = [];
  for (const b of bursts.sort((x, y) => x.from - y.from)) {
    const near = Math.max(3, (b.to - b.from) * 0.2);
    const cluster = clusters.find((c) => Math.abs(c[0].from - b.from) <= near && Math.abs(c[0].to - b.to) <= near);
    if (cluster) cluster.push(b);
    else clusters.push([b]);
  }
  for (const c of clusters) {
    const rows = [...new Set(c.flatMap((b) => b.rows))], isMany = rows.length >= together;
    const [from, to] = [Math.min(...c.map((b) => b.from)), Math.max(...c.map((b) => b.to))];
    const excess = c.reduce((sum, b) => sum + b.excess, 0);
    found.push({ kind: isMany ? "many" : "value", from, to, rows: rows.sort((a, b) => sumOf(b, from, to) - sumOf(a, from, to)), excess, ratio: Math.max(...c.map((b) => b.ratio)) });
  }
  if (rest) {
    for (const r of runs(u.more(rest.amounts.low, false), 3, 1.8)) {
      const many = found.find((f) => f.kind === "many" && overlap(f, r) > 0.5);
      if (many) { many.rows.push(rest); continue; }
      const excess = excessOf(rest.amounts.low, r, u);
      if (matters({ ...r, excess }, u.total)) found.push({ ...r, kind: "spread", rows: [rest], excess });
    }
  }
  if (u.hasTime) found.push(...slowOf(data, u, rest));
  return found.map((f) => Object.assign(f, { usual: u, ...wordsOf(data, u, f) }));
}

// slowOf returns times in which all values or some of them are slow.
function slowOf(data, u, rest) {
  const amounts = rest?.time ? rest.amounts : { low: u.low };
  const time = rest?.time ? rest.time.low : withoutLargest(u);
  const found = runs(u.slower(amounts, time, false), 2.5, 1.7).filter((r) => r.to - r.from > 1).map((r) => ({ ...r, kind: "slow", rows: u.rows, excess: excessOf(u.time, r, u) }));
  const all = found.length;
  for (const row of u.keys) {
    if (!row.time) continue;
    for (const r of runs(u.slower(row.amounts, row.time.low, true), 4, 2)) {
      const excess = excessOf(row.time.low, r, u);
      if (r.to - r.from < 2 || excess / (r.to - r.from) < share * u.totalTime || found.slice(0, all).some((f) => overlap(f, r) > 0.5)) continue;
      found.push({ ...r, kind: "slow", rows: [row], excess });
    }
  }
  return found;
}

// withoutLargest returns the time of all values but the one with the most in each column.
function withoutLargest(u) {
  const largest = new Float64Array(u.time.length);
  for (const { time } of u.keys) if (time) for (let i = 0; i < largest.length; i++) largest[i] = Math.max(largest[i], time.low[i]);
  return u.time.map((sum, i) => sum - largest[i]);
}

// runs returns the times in which a ratio is at least enter, as far as it is at least stay.
function runs(ratio, enter, stay) {
  const found = [];
  for (let i = 0; i < ratio.length; i++) {
    if (!(ratio[i] >= enter)) continue;
    let from = i, to = i + 1, most = 0;
    while (from > 0 && ratio[from - 1] >= stay) from--;
    while (to < ratio.length && ratio[to] >= stay) to++;
    for (let j = from; j < to; j++) most = Math.max(most, ratio[j]);
    const last = found.at(-1);
    if (last && from - last.to <= bridge) Object.assign(last, { to, ratio: Math.max(last.ratio, most) });
    else found.push({ from, to, ratio: most });
    i = to;
  }
  return found;
}

const overlap = (a, b) => Math.max(0, Math.min(a.to, b.to) - Math.max(a.from, b.from)) / (b.to - b.from);

// excessOf returns what a time has more than the columns around it usually have.
function excessOf(values, { from, to }, u) {
  const usual = median(u.sample.filter((i) => i < from || i >= to).map((i) => values[i]));
  let sum = 0;
  for (let i = from; i < to; i++) sum += values[i] - usual;
  return sum;
}

function mostOf(values, { from, to }) {
  let most = 0;
  for (let i = from; i < to; i++) most = Math.max(most, values[i]);
  return most;
}

const sumOf = (row, from, to) => row.amounts.total(from, to).low;

// matters reports whether a time is more than chance, and more than a small part of the total.
function matters({ from, to, excess }, total) {
  const usual = total * (to - from);
  return excess > 30 && excess > 6 * Math.sqrt(usual * share) && excess > usual * share * 0.1;
}

const times = (ratio) => (ratio >= 1000 ? "×1000 or more" : `×${ratio >= 10 ? Math.round(ratio) : ratio.toFixed(1)}`);
// perTime returns a rate, by the minute if another one is less than one a second.
const perTime = (n, unit, other = n) => (Math.min(n, other) < 1 ? `${amount(Math.round(n * 60), unit)}/min` : rate(n, unit));

function wordsOf(data, u, f) {
  const row = f.rows[0], unit = row.unit, low = f.rows.length > 1 ? u.low : row.amounts.low;
  const inside = low.subarray(f.from, f.to);
  const most = Math.max(...inside) / data.step;
  const usual = median(u.columns.filter((i) => i < f.from || i >= f.to).map((i) => low[i])) / data.step;
  const value = f.rows.length === 1 && !row.isRest ? visible(row.key, 60) : "";
  const thirds = (part) => mean(inside.slice(Math.floor((inside.length * part) / 3), Math.ceil((inside.length * (part + 1)) / 3)));
  const isFading = thirds(0) > 2 * thirds(2), isSteady = !isFading && mean(inside) > 0.6 * Math.max(...inside);
  const rise = usual * data.step < 1 ? `from almost none to ${perTime(most, unit)}` : `${times(most / usual)}, from ${perTime(usual, unit, most)} to ${perTime(most, unit, usual)}`;
  const where = visible(row.route.trim() || row.rule, 80), keys = f.rows.filter((r) => !r.isRest).length;
  const count = plural(keys, "value"), requests = unit === "requests" ? "requests" : unit;
  const shape = isFading ? ", then fading" : isSteady ? ", steady" : "";
  let name, short, words;
  if (f.kind === "value") {
    const { refused, low: all } = row.amounts.total(f.from, f.to);
    name = isSteady ? "one client?" : "a crowd?";
    short = `${keys === 1 ? "" : `${count}, `}${usual * data.step < 1 ? "from almost none" : times(most / usual)}`;
    words = `${value || count}, ${rise}${shape}${keys > 1 ? "" : refused > 0 ? `, ${Math.round((100 * refused) / all)}% refused` : refused === 0 ? ", none refused" : ""}`;
  } else if (f.kind === "many") {
    name = "a bot?";
    short = `${count} at once`;
    words = `${count} or more begin and end at once${isSteady ? ", steady between" : ""}, ${requests} ${rise}`;
  } else if (f.kind === "spread") {
    name = "a scan?";
    short = `${requests} ${times(most / usual)}, no value often`;
    words = `${requests} ${rise}, of so many values that none has many`;
  } else {
    const isAll = f.rows.length > 1, { low: n } = isAll ? { low: sum(u.low, f) } : row.amounts.total(f.from, f.to);
    const now = (isAll ? sum(u.time, f) : row.time.total(f.from, f.to).low) / Math.max(1, n);
    name = isAll ? "all values slow" : "a slow value";
    short = `${span(now)} each`;
    words = `${isAll ? "" : `${value}, `}${span(now)} each instead of ${span(u.each)}${mean(inside) < 1.5 * Math.max(usual * data.step, u.typical) ? `, ${requests} as usual` : ""}`;
  }
  return { name, short: `${name}${name.endsWith("?") ? "" : ":"} ${short}${nearMarks(data, f, false)}`, words: `${where}: ${words}${nearMarks(data, f, true)}` };
}

// nearMarks names the changes with which a time begins and ends.
function nearMarks(data, f, hasEnd) {
  const near = (column, word) => {
    const at = data.timeOf(column), mark = data.marks.find((m) => ["deploy", "rules", "control"].includes(m.kind) && Math.abs(m.at - at) <= 2 * data.step);
    return mark ? `, ${word} ${visible(mark.words.startsWith(mark.kind) ? mark.words : `${mark.kind} ${mark.words}`, 60)}` : "";
  };
  return near(f.from, "since") + (hasEnd ? near(f.to, "until") : "");
}

const mean = (values) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);

function sum(values, { from, to }) {
  let all = 0;
  for (let i = from; i < to; i++) all += values[i];
  return all;
}
