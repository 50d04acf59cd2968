// What stands out, on the map: a frame around its cells, with a number and, where there is room, a
// few words.

import { fit } from "./heataxis.js";

const high = 17; // px of words

// placeOf returns the first and the last row of the list that show a finding.
export function placeOf(list, finding) {
  const leaves = new Set(finding.rows);
  const single = finding.rows.length === 1 ? list.findLastIndex((node) => node.leaves.includes(finding.rows[0])) : -1;
  if (single >= 0) return [single, single];
  const shown = list.flatMap((node, i) => (node.leaves.some((leaf) => leaves.has(leaf)) ? [i] : []));
  return shown.length > 0 ? [shown[0], shown.at(-1)] : null;
}

// sideOf returns where words begin that are beside a frame, or nothing if they would hide another
// frame on either side.
function sideOf(map, places, { left, right, width, y, finding }) {
  const sides = [right + 4, left - 4 - width].filter((x) => x > map.gutter && x + width < map.width);
  return sides.find((x) => !places.some((p) => p.finding !== finding && map.x(p.finding.times[0]) < x + width && x < map.x(p.finding.times[1]) && map.y(p.rows[0]) < y + high && y < map.y(p.rows[1] + 1)));
}

// drawFindings draws the frames first, so that no words are below one.
export function drawFindings(map, c, look, axis) {
  const places = map.found.map((finding) => ({ finding, rows: placeOf(map.list, finding) })).filter((p) => p.rows);
  c.lineWidth = 1.5;
  c.strokeStyle = look.ink;
  for (const { finding: { times: [from, to] }, rows: [a, b] } of places) {
    c.strokeRect(map.x(from) - 1, map.y(a), map.x(to) - map.x(from) + 2, (b - a + 1) * map.rowHeight);
  }
  const taken = [];
  c.textBaseline = "middle";
  c.textAlign = "left";
  for (const { finding, rows: [a] } of places) {
    const [left, right] = finding.times.map((at) => map.x(at));
    if (right < map.gutter || left > map.width) continue;
    c.font = `600 11px ${look.sans}`;
    let text = fit(c, finding.short, map.plotWidth - 30), width = c.measureText(text).width + 28;
    let y = Math.max(axis + 1, map.y(a) + (map.rowHeight - high) / 2);
    let x = sideOf(map, places, { left, right, width, y, finding });
    if (x === undefined) [text, width, x] = ["", 18, Math.max(map.gutter + 2, left + 1)]; // the list has the words
    while (taken.some((t) => x < t.x + t.width && t.x < x + width && Math.abs(t.y - y) < high + 1)) y += high + 2;
    taken.push({ x, y, width });
    c.fillStyle = look.panel;
    c.beginPath();
    c.roundRect(x, y, width, high, 4);
    c.fill();
    c.lineWidth = 1;
    c.strokeStyle = look.ink;
    c.stroke();
    c.fillStyle = look.ink;
    c.beginPath();
    c.roundRect(x, y, 18, high, 4);
    c.fill();
    c.fillText(text, x + 23, y + high / 2 + 0.5);
    c.fillStyle = look.panel;
    c.textAlign = "center";
    c.fillText(String(finding.number), x + 9, y + high / 2 + 0.5);
    c.textAlign = "left";
  }
}
