// Rows of the heat map: route, parameter, value. Many values are folded by their prefixes.

import { Amounts } from "./heatdata.js";
import { plural, visible } from "./format.js";

const fewValues = 6;    // are not folded
const openValues = 12;  // beside the folds of a fold that is open
const mostFolds = 12;   // the smallest of more share one

// Node is a row of the map: a leaf has one row of the data, and the others have the sum of theirs.
class Node {
  constructor(id, label, kind, leaves, more = {}) {
    Object.assign(this, { id, label, kind, leaves, children: [], depth: 0, open: false, dim: "" }, more);
  }

  // amounts returns the sums of the leaves, or with "time" those of their time. They are kept until
  // the data changes.
  amounts(data, of = "amounts") {
    if (this.leaves.length === 1 && this.leaves[0][of]) return this.leaves[0][of];
    if (this.sums?.of !== data || this.sums.version !== data.version) this.sums = { of: data, version: data.version };
    if (!this.sums[of]) {
      const sum = this.sums[of] = new Amounts(data.columns);
      for (const leaf of this.leaves) if (leaf[of]) sum.add(leaf[of]);
    }
    return this.sums[of];
  }
}

// rowName returns the name of a row in links. A value has the same one in whatever fold it is.
export const rowName = (node) => (node.kind === "value" ? `=${keyName(node.leaves[0])}` : node.id);

export const keyName = (row) => JSON.stringify([row.rule, row.route, row.key]);

// split returns the parameter and the value of a key. A key is the text after its route, or all
// of it, with the value in the place of a {name}.
export function split(route, key) {
  const names = route.match(/\{[^}]*\}/g);
  let text = key;
  const fixed = names ? route.slice(0, route.indexOf("{")) : route;
  if (fixed && text.startsWith(fixed)) text = text.slice(fixed.length);
  text = text.replace(/^(\* |[? ])/, "");
  const parts = text.split(/[?&]/);
  if (names && !parts[0].includes("=")) return { parameter: names.join(" "), value: text };
  if (!text.includes("=")) return { parameter: "", value: text };
  if (parts.length === 1) return { parameter: text.slice(0, text.indexOf("=")), value: text.slice(text.indexOf("=") + 1) };
  return { parameter: parts.filter((p) => p.includes("=")).map((p) => p.split("=", 1)[0]).join(" & "), value: text };
}

// peakOf returns the most of a row in a column.
function peakOf(row, measure) {
  let most = 0;
  const values = row.amounts[measure];
  for (let i = 0; i < values.length; i++) if (values[i] > most) most = values[i];
  return most;
}

// build returns the nodes of the rows that pass a filter. The room is the number of rows that fit
// on the screen. Values that stand out, or have high peaks or sums, have rows of their own.
export function build(rows, { unit, measure, filter, room, chosen, outstanding = [] }) {
  const routes = new Map();
  const peaks = new Map();
  const words = filter.toLowerCase();
  for (const row of rows) {
    if (unit !== null && row.unit !== unit) continue;
    if (words && (row.isRest || !`${row.rule} ${row.route} ${row.key}`.toLowerCase().includes(words))) continue;
    const peak = peakOf(row, measure);
    if (row.isRest && peak === 0) continue;
    peaks.set(row, peak);
    const { parameter, value } = row.isRest ? { parameter: null, value: "" } : split(row.route, row.key);
    const group = upsert(routes, row.route || `\n${row.rule}`, () => new Map()); // a rule's own group, if its keys have no route
    const id = JSON.stringify([row.rule, row.unit]);
    const rule = upsert(group, id, () => ({ rule: row.rule, unit: row.unit, parameters: new Map(), rest: null }));
    if (row.isRest) rule.rest = row;
    else upsert(rule.parameters, parameter, () => []).push({ row, value, peak });
  }
  const groups = [...routes.values()].reduce((n, g) => n + g.size, 0);
  const own = Math.max(groups, Math.floor((room - 3 * groups) * 0.7) - outstanding.length);
  const values = [...peaks.keys()].filter((row) => !row.isRest);
  const sums = new Map(values.map((row) => [row, row.amounts[measure].reduce((sum, n) => sum + (n || 0), 0)]));
  const first = (of) => values.toSorted((a, b) => of.get(b) - of.get(a)).slice(0, own === Infinity ? own : Math.ceil(own / 2));
  const heavy = new Set([...outstanding, ...first(peaks), ...first(sums)]); // the steady ones as well as the sudden ones
  const folds = Math.max(2, Math.floor((room - own) / Math.max(1, groups)) - 2);
  const top = [...routes].sort(byKey).map(([route, rules]) => routeNode(route, rules, heavy, folds));
  const list = [];
  const walk = (node, depth) => {
    node.depth = depth;
    const unfold = chosen.get(node.id);
    node.open = node.children.length > 0 && (unfold ?? (node.kind !== "fold" || Boolean(words && node.children.length <= room)));
    list.push(node);
    if (node.open) for (const child of node.children) walk(child, depth + 1);
  };
  for (const node of top) walk(node, 0);
  return list;
}

const byKey = ([a], [b]) => (a < b ? -1 : a > b ? 1 : 0);

function upsert(map, key, make) {
  let value = map.get(key);
  if (value === undefined) map.set(key, value = make());
  return value;
}

function routeNode(route, rules, heavy, folds) {
  const label = visible(route.trim(), 120);
  const parts = [];
  for (const { rule, unit, parameters, rest } of rules.values()) {
    const id = `${route}\n${rule}\n${unit}`;
    const nodes = [...parameters].sort(byKey).map(([name, values]) => {
      values.sort((a, b) => (a.value < b.value ? -1 : a.value > b.value ? 1 : 0));
      const node = new Node(`${id}\n${name}`, visible(name, 80) || "values", "parameter", values.map((v) => v.row), { dim: visible(rule, 80) });
      node.children = fold(values, node.id, heavy, folds, "");
      return node;
    });
    if (rest) {
      const other = new Node(`${id}\n\nrest`, "all other values", "rest", [rest], { dim: nodes.length === 1 ? "" : visible(rule, 80) });
      if (nodes.length === 1) {
        nodes[0].leaves = [...nodes[0].leaves, rest];
        nodes[0].children.push(other);
      } else nodes.push(other);
    }
    parts.push(...nodes);
  }
  if (parts.length === 1) { // one row says both
    parts[0].label = `${label} · ${parts[0].label}`;
    if (parts[0].dim === label) parts[0].dim = "";
    parts[0].kind = "route";
    return parts[0];
  }
  const node = new Node(route, label, "route", parts.flatMap((p) => p.leaves));
  node.children = parts;
  return node;
}

// fold returns the nodes of values in the order of their text: those that have a row of their
// own, and folds of the others by the character after the prefix that all have in common.
function fold(values, id, heavy, folds, common) {
  const leaf = (v) => new Node(`${id}\n=${v.value}`, visible(v.value, 200) || "(empty)", "value", [v.row]);
  if (values.length <= fewValues) return values.map(leaf);
  const others = values.filter((v) => !heavy.has(v.row));
  const found = values.filter((v) => heavy.has(v.row)).map((v) => [v.value, leaf(v)]);
  const groups = byPrefix(others).sort((a, b) => b.values.length - a.values.length);
  const large = groups.filter((g) => g.values.length > 2 || others.length <= fewValues).slice(0, folds);
  const last = groups.filter((g) => !large.includes(g)).flatMap((g) => g.values);
  if (last.length > 0) large.push({ prefix: common, values: last, isMixed: true });
  for (const g of large) {
    if (g.values.length === 1) { found.push([g.values[0].value, leaf(g.values[0])]); continue; }
    const count = plural(g.values.length, "value");
    const node = new Node(`${id}\n${g.prefix}*${g.isMixed ? "*" : ""}`, g.isMixed ? count : `${visible(g.prefix, 120)}…`, "fold", g.values.map((v) => v.row), { dim: g.isMixed ? "" : count });
    const highest = new Set(g.values.toSorted((a, b) => b.peak - a.peak).slice(0, openValues).map((v) => v.row));
    node.children = g.values.length === values.length || (g.isMixed && large.length === 1) ? g.values.map(leaf) : fold(g.values, node.id, highest, mostFolds, g.prefix);
    found.push([g.isMixed ? "\uffff" : g.prefix, node]);
  }
  return found.sort(byKey).map(([, node]) => node);
}

// byPrefix divides values by the character after the prefix that all have in common.
function byPrefix(values) {
  if (values.length === 0) return [];
  const groups = new Map(), prefix = shared(values);
  for (const v of values) {
    const next = v.value.codePointAt(prefix.length) ?? 0;
    upsert(groups, next, () => []).push(v);
  }
  return [...groups.values()].map((all) => ({ values: all, prefix: shared(all) }));
}

// shared returns the longest prefix of all values, which does not end within a character.
function shared(values) {
  const a = values[0].value;
  let n = a.length;
  for (const { value } of values) {
    let i = 0;
    while (i < n && value[i] === a[i]) i++;
    n = i;
  }
  if (n > 0 && a.charCodeAt(n - 1) >= 0xd800 && a.charCodeAt(n - 1) < 0xdc00) n--;
  return a.slice(0, n);
}
