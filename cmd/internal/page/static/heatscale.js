// The colours of the heat map, and the logarithmic scale that chooses them.

import { el } from "./dom.js";

// Lightness, chroma and hue in OKLCH. The lightness only rises, so the order of the colours is
// the same for every kind of colour vision, and in grey.
const anchors = [[0.27, 0.07, 275], [0.42, 0.17, 300], [0.57, 0.2, 5], [0.73, 0.17, 50], [0.95, 0.13, 105]];
const colours = 256;

function oklab([lightness, chroma, hue]) {
  const angle = (hue * Math.PI) / 180;
  return [lightness, chroma * Math.cos(angle), chroma * Math.sin(angle)];
}

function srgb([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s]
    .map((v) => Math.round(255 * Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055))));
}

// The path through the anchors is divided into steps of the same length in OKLab, so equal
// differences on the scale look equally large.
function rampOf(anchors, colours) {
  const points = [], lengths = [0], fine = 400;
  const labs = anchors.map(oklab);
  for (let i = 0; i <= fine; i++) {
    const place = (i / fine) * (labs.length - 1), from = Math.min(labs.length - 2, Math.floor(place)), part = place - from;
    points.push(labs[from].map((v, j) => v + (labs[from + 1][j] - v) * part));
    if (i > 0) lengths.push(lengths[i - 1] + Math.hypot(...points[i].map((v, j) => v - points[i - 1][j])));
  }
  const found = [];
  for (let i = 0, j = 0; i < colours; i++) {
    const want = (lengths[fine] * i) / (colours - 1);
    while (j < fine - 1 && lengths[j + 1] < want) j++;
    const part = (want - lengths[j]) / (lengths[j + 1] - lengths[j]);
    found.push(srgb(points[j].map((v, k) => v + (points[j + 1][k] - v) * part)));
  }
  return found;
}

const ramp = rampOf(anchors, colours);

// The colours of a comparison have two hues, whose lightness falls alike. Orange and blue differ for
// every kind of colour vision.
const half = colours / 2;
const comparedWith = {
  false: { usual: [0.94, 0.005, 240], more: [[0.9, 0.07, 75], [0.7, 0.18, 50], [0.5, 0.19, 28], [0.33, 0.12, 20]], slower: [[0.9, 0.05, 230], [0.7, 0.12, 245], [0.5, 0.17, 265], [0.33, 0.14, 275]] },
  true: { usual: [0.32, 0.01, 240], more: [[0.42, 0.08, 40], [0.6, 0.18, 45], [0.78, 0.16, 65], [0.94, 0.1, 95]], slower: [[0.42, 0.08, 270], [0.58, 0.15, 262], [0.74, 0.13, 240], [0.93, 0.05, 220]] },
};
const pairs = new Map();

// comparedPalette returns the colour of what is usual, then half of them for more, and half for slower.
export function comparedPalette(dark) {
  const { usual, more, slower } = comparedWith[dark];
  if (!pairs.has(dark)) pairs.set(dark, [srgb(oklab(usual)), ...rampOf(more, half - 1), ...rampOf(slower, half)]);
  return pairs.get(dark);
}

const least = 3, most = 100; // times the usual

const comparedPlace = (ratio) => Math.min(1, Math.log(ratio / least) / Math.log(most / least));

// comparedColour returns the colour of a column with times the usual requests, or of which each
// takes times the usual time. The larger one is shown.
export function comparedColour(more, slower) {
  if (Math.max(more, slower) < least) return 0;
  return slower > more ? half + Math.round(comparedPlace(slower) * (half - 1)) : 1 + Math.round(comparedPlace(more) * (half - 2));
}

// palette returns the colours from the least to the most: the most is bright on dark paper and
// dark on light paper.
export const palette = (dark) => (dark ? ramp : ramp.toReversed());

const decades = 3.5; // below the most; what is less has the first colour

export class Scale {
  constructor(most) {
    this.most = most;
    this.floor = most / 10 ** decades;
  }

  // place returns a number from 0 to 1, or -1 for nothing.
  place(value) {
    if (!(value > 0) || this.most <= 0) return -1;
    return Math.min(1, Math.log1p(value / this.floor) / Math.log1p(this.most / this.floor));
  }

  colour(value) {
    const place = this.place(value);
    return place < 0 ? -1 : Math.round(place * (colours - 1));
  }

  // ticks returns the powers of ten on the scale, and the most.
  ticks() {
    if (this.most <= 0) return [];
    const found = [];
    for (let power = Math.ceil(Math.log10(this.floor * 2)); 10 ** power < this.most * 0.6; power++) found.push(10 ** power);
    return [...found, this.most];
  }
}

// drawComparedLegend shows the colours of a comparison: slower to the left, more to the right.
export function drawComparedLegend(node, isDark, hasTime) {
  const c = node.querySelector("canvas").getContext("2d"), colours256 = comparedPalette(isDark);
  for (let i = 0; i < colours; i++) {
    const at = (Math.abs(i - 127.5) - 12) / 116; // the middle is what is usual
    const index = at < 0 ? 0 : i < half ? (hasTime ? half + Math.round(at * (half - 1)) : 0) : 1 + Math.round(at * (half - 2));
    c.fillStyle = `rgb(${colours256[index].join(" ")})`;
    c.fillRect(i, 0, 1, 1);
  }
  const labels = [[hasTime ? `×${most} slower` : "", 14], ["usual", 50], [`×${most} requests`, 83]];
  node.querySelector("ol").replaceChildren(...labels.filter(([text]) => text).map(([text, place]) => {
    const item = el("li", { class: "middle" }, text);
    item.style.left = `${place}%`;
    return item;
  }));
  node.setAttribute("aria-label", `Colour is how many times more requests than usual there were${hasTime ? ", or how many times longer each took" : ""}, from ${least} to ${most}, logarithmic. Usual is the median of this time.`);
}

// drawLegend shows the colours with their values.
export function drawLegend(node, scale, isDark, words, name) {
  const canvas = node.querySelector("canvas"), c = canvas.getContext("2d");
  palette(isDark).forEach(([r, g, b], i) => {
    c.fillStyle = `rgb(${r} ${g} ${b})`;
    c.fillRect(i, 0, 1, 1);
  });
  const ticks = scale.ticks();
  let next = 1.3; // the place of the tick above
  const shown = ticks.toReversed().filter((value) => {
    const fits = next - scale.place(value) > 0.24;
    if (fits) next = scale.place(value);
    return fits;
  });
  node.querySelector("ol").replaceChildren(...shown.map((value) => {
    const item = el("li", {}, words(value));
    item.style.left = `${(scale.place(value) * 100).toFixed(1)}%`;
    return item;
  }));
  node.setAttribute("aria-label", ticks.length > 0 ? `Colour is ${name}, from ${words(scale.floor)} to ${words(scale.most)}, logarithmic` : "Nothing to colour");
}
