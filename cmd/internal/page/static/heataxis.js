// The time axis of the heat map, and the marks on it.

import { clock, dateTime, visible } from "./format.js";

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800];
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// axisTicks draws round local times below the marks.
export function axisTicks(map, c, look, height) {
  const [from, to] = map.window;
  const step = steps.find((s) => (map.plotWidth * s) / (to - from) > 74) ?? 604800;
  const offset = -new Date(from * 1000).getTimezoneOffset() * 60;
  c.textBaseline = "alphabetic";
  c.textAlign = "center";
  c.font = `11px ${look.sans}`;
  for (let at = Math.ceil((from + offset) / step) * step - offset; at <= to; at += step) {
    const x = map.x(at), local = new Date(at * 1000);
    const isDay = local.getHours() === 0 && local.getMinutes() === 0 && local.getSeconds() === 0;
    const text = isDay ? `${local.getDate()} ${months[local.getMonth()]}` : clock(at * 1000).slice(0, step < 60 ? 8 : 5);
    c.fillStyle = look.rule;
    c.fillRect(Math.round(x), height - 6, 1, 6);
    c.fillStyle = look.dim;
    const half = c.measureText(text).width / 2;
    if (x - half > map.gutter - 8 && x + half < map.width) c.fillText(text, x, height - 9);
  }
  c.textAlign = "left";
  c.fillStyle = look.dim;
  c.font = `600 11px ${look.sans}`;
  c.fillText(dateTime(from * 1000).slice(0, 10), 8, height - 9);
}

// kinds are the signs of marks. Those that are loud have a line through the map and words.
const kinds = {
  deploy: { sign: "D", loud: true }, rules: { sign: "R", loud: true }, control: { sign: "C", loud: true }, fault: { sign: "!", loud: true },
  hot: { sign: "▴" }, cool: { sign: "▾" },
};

export const kindOf = (mark) => (Object.hasOwn(kinds, mark.kind) ? kinds[mark.kind] : { sign: "?", loud: true });

// drawMarks draws the marks above the times: quiet ones as small signs, loud ones with words if
// there is room.
export function drawMarks(map, c, look, height) {
  const [from, to] = map.window;
  const seen = map.data.marks.filter((m) => m.at >= from && m.at <= to);
  c.textBaseline = "middle";
  c.font = `9px ${look.sans}`;
  let last = -Infinity;
  for (const mark of seen.filter((m) => !kindOf(m).loud)) {
    const x = map.x(mark.at);
    if (x - last < 5) continue; // as many as can be told apart
    last = x;
    c.fillStyle = look.threshold;
    c.textAlign = "center";
    c.fillText(kindOf(mark).sign, x, height - 23);
  }
  c.textAlign = "left";
  const loud = seen.filter((m) => kindOf(m).loud);
  const free = [map.gutter, map.gutter]; // where the next words of each line may begin
  loud.forEach((mark, i) => {
    const x = Math.min(Math.round(map.x(mark.at)), map.width - 8);
    const line = x - 9 >= free[0] || free[0] <= free[1] ? 0 : 1, top = 3 + 17 * line;
    c.fillStyle = mark.kind === "fault" ? look.bad : look.ink;
    for (let y = top + 15; y < Math.min(map.height, map.y(map.list.length)); y += 6) c.fillRect(x, y, 1, 3);
    c.beginPath();
    c.roundRect(x - 7, top, 15, 15, 3);
    c.fill();
    c.fillStyle = look.panel;
    c.font = `700 11px ${look.sans}`;
    c.textAlign = "center";
    c.fillText(kindOf(mark).sign, x + 0.5, top + 8);
    c.font = `11px ${look.sans}`;
    c.fillStyle = look.ink;
    const text = mark.words.startsWith(mark.kind) || mark.kind === "fault" ? visible(mark.words, 80) : `${visible(mark.kind, 20)}: ${visible(mark.words, 80)}`;
    const right = fit(c, text, Math.min(map.width, nextOf(map, loud, i)) - x - 14), isLeft = right !== text && c.measureText(text).width < x - 14 - free[line];
    free[line] = x + 12;
    if (isLeft) {
      c.textAlign = "right";
      c.fillText(text, x - 11, top + 8);
    } else if (right.length > 4) {
      c.textAlign = "left";
      c.fillText(right, x + 12, top + 8);
      free[line] += c.measureText(right).width + 8;
    }
  });
  c.textAlign = "left";
  drawSigns(c, look, seen, map.data.gaps.length > 0, map.gutter);
}

// nextOf returns where the words of a mark end: at the next mark but one, as there are two lines.
const nextOf = (map, loud, i) => (i + 2 < loud.length ? map.x(loud[i + 2].at) - 10 : map.width);

// drawSigns explains the signs of the marks that are shown.
function drawSigns(c, look, seen, hasGaps, width) {
  const kindsSeen = Object.entries(kinds).filter(([kind]) => seen.some((m) => m.kind === kind));
  const words = kindsSeen.map(([kind, { sign }]) => `${sign} ${kind === "hot" ? "became hot" : kind === "cool" ? "cooled" : kind}`);
  if (hasGaps) words.push("▨ no data");
  c.font = `11px ${look.sans}`;
  c.fillStyle = look.dim;
  let line = "", y = 11;
  for (const word of words) {
    const longer = line ? `${line}  ${word}` : word;
    if (c.measureText(longer).width < width - 16) { line = longer; continue; }
    c.fillText(line, 8, y);
    [line, y] = [word, y + 17];
  }
  if (line && y < 40) c.fillText(line, 8, y);
}

// marksAt returns the marks within some pixels of x.
export function marksAt(map, x) {
  return map.data ? map.data.marks.filter((m) => Math.abs(map.x(m.at) - x) < 8) : [];
}

// fit shortens a text to a width.
export function fit(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  let from = 0, to = text.length;
  while (from < to) {
    const middle = (from + to + 1) >> 1;
    if (c.measureText(`${text.slice(0, middle)}…`).width <= width) from = middle;
    else to = middle - 1;
  }
  return from > 0 ? `${text.slice(0, from)}…` : "";
}
