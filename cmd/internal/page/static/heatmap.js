// The map itself: cells in a picture that is made once for each change of the data, and drawn
// at any place and size after that.

import { comparedColour, comparedPalette, palette, Scale } from "./heatscale.js";
import { drawFindings } from "./heatcallout.js";
import { axisTicks, drawMarks, fit, marksAt } from "./heataxis.js";

const axis = 62;           // px above the cells: marks, then times
const leastRow = 3, mostRow = 26, textRow = 12; // px
const indent = 11;

export class HeatMap {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.image = new OffscreenCanvas(1, 1);
    this.list = [];
    this.data = null;
    this.window = [0, 1];   // seconds
    this.zoom = 1;          // of the rows
    this.top = 0;           // px of the rows above
    this.cursor = null;     // {row, at}
    this.brush = null;      // {rows: [a, b], times: [a, b]}
    this.found = [];        // what stands out
    this.frames = 0;
    [this.width, this.height, this.gutter] = [900, 500, 200]; // until it is shown
  }

  resize() {
    const ratio = devicePixelRatio, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (width === 0 || height === 0) return; // hidden
    if (this.canvas.width !== Math.round(width * ratio)) this.canvas.width = Math.round(width * ratio);
    if (this.canvas.height !== Math.round(height * ratio)) this.canvas.height = Math.round(height * ratio);
    this.width = width;
    this.height = height;
    this.gutter = Math.round(Math.min(300, width * 0.32));
  }

  get plotWidth() { return Math.max(1, this.width - this.gutter); }
  get plotHeight() { return Math.max(1, this.height - axis); }
  // The rows that have room with their names.
  get room() { return Math.max(8, Math.floor(this.plotHeight / 17)); }
  get rowHeight() { return Math.min(mostRow, Math.max(leastRow, (this.plotHeight / Math.max(1, this.list.length)) * this.zoom)); }

  // show makes the picture of a list of rows. The values are those of a measure, per second, or
  // how they compare with what is usual.
  show(data, list, measure, isDark, usual) {
    Object.assign(this, { data, list, measure, isDark });
    const { columns } = data, rows = Math.max(1, list.length), cells = new Uint32Array(columns * rows);
    const colours = new Uint32Array((usual ? comparedPalette(isDark) : palette(isDark)).map(([r, g, b]) => (255 << 24) | (b << 16) | (g << 8) | r));
    if (usual) this.compare(usual, cells, colours);
    else this.colour(cells, colours);
    if (this.image.width !== columns || this.image.height !== rows) Object.assign(this.image, { width: columns, height: rows });
    this.image.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(cells.buffer), columns, rows), 0, 0);
    this.clamp();
  }

  colour(cells, colours) {
    const { data, list, measure } = this, { columns } = data;
    const seconds = Array.from({ length: columns }, (_, i) => data.seconds(i));
    const values = list.map((node) => node.amounts(data)[measure]);
    let most = 0;
    for (const row of values) for (let i = 0; i < columns; i++) if (row[i] / seconds[i] > most) most = row[i] / seconds[i];
    this.scale = new Scale(most);
    values.forEach((row, y) => {
      for (let i = 0; i < columns; i++) {
        const colour = this.scale.colour(row[i] / seconds[i]);
        if (colour >= 0) cells[y * columns + i] = colours[colour];
      }
    });
  }

  compare(usual, cells, colours) {
    const { data, list } = this, { columns } = data;
    list.forEach((node, y) => {
      const of = usual.get(node.leaves[0].rule), isKey = node.kind === "value";
      const amounts = node.amounts(data), time = node.amounts(data, "time");
      const more = of.more(amounts.low, isKey), slower = of.slower(amounts, time.low, isKey);
      for (let i = 0; i < columns; i++) {
        if (amounts.low[i] > 0 || time.low[i] > 0) cells[y * columns + i] = colours[comparedColour(more[i], slower[i])];
      }
    });
  }

  clamp() {
    this.top = Math.max(0, Math.min(this.top, this.list.length * this.rowHeight - this.plotHeight));
  }

  x(at) { return this.gutter + ((at - this.window[0]) / (this.window[1] - this.window[0])) * this.plotWidth; }
  y(row) { return axis + row * this.rowHeight - this.top; }
  timeAt(x) { return this.window[0] + ((x - this.gutter) / this.plotWidth) * (this.window[1] - this.window[0]); }

  // hit returns the part under a point: {part: "cell" | "name" | "axis", row, at}.
  hit(x, y) {
    const row = Math.floor((y - axis + this.top) / this.rowHeight);
    const part = y < axis ? "axis" : x < this.gutter ? "name" : "cell";
    return { part, row: Math.max(0, Math.min(this.list.length - 1, row)), isRow: row >= 0 && row < this.list.length, at: this.timeAt(Math.max(this.gutter, Math.min(this.width, x))), marks: y < axis ? marksAt(this, x) : [] };
  }

  // zoomRows changes the height of the rows, and keeps the row under y.
  zoomRows(factor, y) {
    const before = this.rowHeight, row = (y - axis + this.top) / before;
    this.zoom = Math.max(1, Math.min(60, this.zoom * factor));
    while (this.zoom > 1 && this.rowHeight * 1.0001 < before * factor && this.rowHeight < mostRow && this.zoom < 60) this.zoom *= 1.1; // rows are as high as the least height
    this.top = row * this.rowHeight - (y - axis);
    this.clamp();
  }

  // reveal scrolls to the cursor.
  reveal() {
    if (!this.cursor) return;
    const y = this.cursor.row * this.rowHeight;
    this.top = Math.min(y, Math.max(this.top, y + this.rowHeight - this.plotHeight));
    this.clamp();
  }

  draw(look) {
    const c = this.context, { data } = this;
    const ratio = devicePixelRatio;
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = look.panel;
    c.fillRect(0, 0, this.width, this.height);
    if (!data) return;
    c.save();
    c.beginPath();
    c.rect(this.gutter, axis, this.plotWidth, this.plotHeight);
    c.clip();
    const height = this.list.length * this.rowHeight;
    c.imageSmoothingEnabled = false;
    const left = this.x(data.from);
    c.drawImage(this.image, left, axis - this.top, this.x(data.timeOf(data.columns)) - left, height);
    this.drawGaps(c, look, height);
    this.drawLines(c, look);
    this.drawCursor(c, look);
    c.restore();
    this.drawNames(c, look);
    axisTicks(this, c, look, axis);
    drawMarks(this, c, look, axis);
    c.save();
    c.beginPath();
    c.rect(this.gutter, axis, this.plotWidth, this.plotHeight);
    c.clip();
    drawFindings(this, c, look, axis);
    c.restore();
    this.drawScroll(c, look, height);
    this.frames++;
  }

  // drawGaps hatches the times that no one wrote, which is not the same as no requests.
  drawGaps(c, look, height) {
    if (this.hatchOf !== look.faint) {
      const tile = new OffscreenCanvas(8, 8), t = tile.getContext("2d");
      t.strokeStyle = look.faint;
      t.lineWidth = 1;
      t.beginPath();
      for (const i of [-8, 0, 8]) { t.moveTo(i, 8); t.lineTo(i + 8, 0); }
      t.stroke();
      this.hatch = c.createPattern(tile, "repeat");
      this.hatchOf = look.faint;
    }
    for (const [a, b] of this.data.gaps) {
      const x = this.x(a), width = Math.max(2, this.x(b) - x);
      c.fillStyle = look.panel;
      c.fillRect(x, axis, width, Math.min(height, this.plotHeight));
      c.fillStyle = this.hatch;
      c.fillRect(x, axis, width, Math.min(height, this.plotHeight));
    }
  }

  // drawLines separates routes.
  drawLines(c, look) {
    c.fillStyle = look.faint;
    this.list.forEach((node, i) => {
      if (node.depth === 0 && i > 0) c.fillRect(this.gutter, Math.round(this.y(i)), this.plotWidth, 1);
    });
  }

  drawCursor(c, look) {
    if (this.brush) {
      const { rows: [a, b], times: [from, to] } = this.brush;
      c.strokeStyle = look.ink;
      c.lineWidth = 1.5;
      c.setLineDash([5, 3]);
      c.strokeRect(this.x(from), this.y(a), this.x(to) - this.x(from), (b - a + 1) * this.rowHeight);
      c.setLineDash([]);
    }
    if (!this.cursor) return;
    const column = this.data.columnOf(this.cursor.at);
    const x = this.x(this.data.timeOf(column)), width = Math.max(5, this.x(this.data.timeOf(column + 1)) - x), height = Math.max(5, this.rowHeight);
    c.lineWidth = 3;
    c.strokeStyle = look.panel;
    c.strokeRect(x - 1, this.y(this.cursor.row) - 1, width + 2, height + 2);
    c.lineWidth = 2;
    c.strokeStyle = look.focus;
    c.strokeRect(x - 1, this.y(this.cursor.row) - 1, width + 2, height + 2);
  }

  drawNames(c, look) {
    c.save();
    c.beginPath();
    c.rect(0, axis, this.gutter, this.plotHeight);
    c.clip();
    c.textBaseline = "middle";
    c.direction = "ltr";
    const h = this.rowHeight;
    const first = Math.max(0, Math.floor(this.top / h)), last = Math.min(this.list.length, Math.ceil((this.top + this.plotHeight) / h));
    let free = -Infinity;
    for (let i = first; i < last; i++) {
      const node = this.list[i], y = this.y(i), middle = y + h / 2;
      if (this.cursor?.row === i) {
        c.fillStyle = look.chosen;
        c.fillRect(0, y, this.gutter, Math.max(h, 2));
      }
      if (middle - textRow / 2 < free && this.cursor?.row !== i) continue;
      free = middle + textRow / 2;
      const x = 8 + node.depth * indent;
      if (node.children.length > 0) {
        c.fillStyle = look.dim;
        c.beginPath();
        if (node.open) { c.moveTo(x, middle - 2.5); c.lineTo(x + 7, middle - 2.5); c.lineTo(x + 3.5, middle + 3); } else { c.moveTo(x + 1, middle - 4); c.lineTo(x + 6.5, middle); c.lineTo(x + 1, middle + 4); }
        c.fill();
      }
      c.font = `${node.depth === 0 ? "600 " : ""}12px ${node.kind === "rest" ? look.sans : look.mono}`;
      c.fillStyle = node.kind === "rest" || node.kind === "fold" ? look.dim : look.ink;
      const room = this.gutter - x - 22;
      const text = fit(c, node.label, room);
      c.fillText(text, x + 12, middle);
      const used = c.measureText(text).width + 10;
      if (node.dim && room - used > 40) {
        c.font = `11px ${look.sans}`;
        c.fillStyle = look.dim;
        c.fillText(fit(c, node.dim, room - used), x + 12 + used, middle);
      }
    }
    c.restore();
  }

  drawScroll(c, look, height) {
    if (height <= this.plotHeight + 1) return;
    const size = Math.max(20, (this.plotHeight / height) * this.plotHeight);
    c.fillStyle = look.faint;
    c.fillRect(this.width - 5, axis + (this.top / (height - this.plotHeight)) * (this.plotHeight - size), 4, size);
  }
}
