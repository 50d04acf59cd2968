// The heat map as a table, for screen readers and for exact numbers.

import { el, replace } from "./dom.js";
import { amount, clock, dateTime, plural, visible } from "./format.js";

const mostRows = 60, mostColumns = 12;

// drawTable shows the same rows as the map, with the columns of the window added up to a few.
export function drawTable(node, map, words) {
  const { data } = map;
  const from = Math.max(0, data.columnOf(map.window[0])), to = Math.min(data.columns, data.columnOf(map.window[1] - 1e-9) + 1);
  const each = Math.max(1, Math.ceil((to - from) / mostColumns));
  const starts = [];
  for (let i = from; i < to; i += each) starts.push(i);
  const time = (column) => (data.step * data.columns > 86400 ? dateTime(data.timeOf(column) * 1000).slice(5, 16) : clock(data.timeOf(column) * 1000));
  const isGap = (i) => data.gaps.some(([a, b]) => a <= data.timeOf(i) && b >= data.timeOf(Math.min(to, i + each)));
  const rows = map.list.slice(0, mostRows);
  replace(node, el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "plain" },
    el("caption", {}, `${words}: ${plural(rows.length, "row")}${map.list.length > rows.length ? ` of ${map.list.length}` : ""}`),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Row"), starts.map((i) => el("th", { scope: "col", class: "r" }, time(i))))),
    el("tbody", {}, rows.map((row) => {
      const amounts = row.amounts(data);
      return el("tr", {}, el("th", { scope: "row", class: `mono depth${Math.min(3, row.depth)}` }, row.label, row.dim && ` (${row.dim})`), starts.map((i) => {
        const sum = amounts.total(i, Math.min(to, i + each));
        const n = map.measure === "refused" ? sum.refused : sum.low;
        return el("td", { class: "r" }, isGap(i) ? "no data" : n > 0 ? amount(n, row.leaves[0].unit) : "–");
      }));
    })))),
    data.marks.length > 0 && el("table", { class: "plain" }, el("caption", {}, "Marks"), el("tbody", {}, data.marks.slice(-mostRows).map((m) =>
      el("tr", {}, el("td", { class: "when" }, dateTime(m.at * 1000)), el("td", {}, visible(m.kind, 20)), el("td", { class: "text" }, `${m.key ? `${visible(m.key, 300)}: ` : ""}${visible(m.words, 300)}`))))));
}
