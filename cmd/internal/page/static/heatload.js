// Answers of /api/v1/history: a whole time, or the newest columns of the one that is shown.

import { HeatData } from "./heatdata.js";

const patience = 20000; // ms
const late = 10; // seconds after which the history has everything of a time

export class HeatLoader {
  // now returns the server's time in seconds.
  constructor(now) {
    this.now = now;
    this.filter = "";
    this.data = null;
    this.state = "new";   // new, loading, ready, off, bad
    this.problem = "";
    this.running = null;
  }

  // load reads a time. A later call ends an earlier one. It reports whether there is new data.
  async load([from, to], columns) {
    this.running?.abort();
    const abort = this.running = new AbortController();
    if (!this.data) this.state = "loading";
    const answer = await this.ask(from, to, columns, abort);
    if (this.running !== abort) return false;
    this.running = null;
    if (!answer) return true; // the state has the reason
    this.data = new HeatData(answer, this.now());
    return true;
  }

  // follow reads the columns from the newest one on. It reports what is new: "cells", "rows" or nothing.
  async follow([from, to], columns) {
    const { data } = this;
    if (!data || this.running || this.state !== "ready") return "";
    const start = data.timeOf(Math.max(0, data.columnOf(Math.min(data.now, data.to) - late)));
    if (to - start > (to - from) / 2) return (await this.load([from, to], columns)) ? "rows" : "";
    const abort = this.running = new AbortController();
    const count = Math.max(1, Math.ceil((to - start) / data.step)); // no shorter columns fit than those there are
    const answer = await this.ask(start, start + count * data.step, count, abort);
    if (this.running !== abort) return "";
    this.running = null;
    if (!answer || this.data !== data) return "";
    if (!data.joins(answer)) return (await this.load([from, to], columns)) ? "rows" : "";
    const grown = data.merge(answer, this.now());
    return grown ? "rows" : "cells";
  }

  async ask(from, to, columns, abort) {
    const timer = setTimeout(() => abort.abort(new Error(`no answer within ${patience / 1000} s`)), patience);
    try {
      const answer = await fetch(`/api/v1/history?from=${Math.floor(from)}&to=${Math.ceil(to)}&columns=${columns}${this.filter && `&text=${encodeURIComponent(this.filter)}`}`, { cache: "no-store", signal: abort.signal });
      if (answer.status === 404 || answer.status === 501) { this.state = "off"; return null; }
      const body = await answer.json();
      if (!answer.ok) throw new Error(body.error ?? `status ${answer.status}`);
      this.state = "ready";
      return body;
    } catch (error) {
      if (this.running === abort) [this.state, this.problem] = ["bad", String(error.message ?? error)];
      return null;
    } finally { clearTimeout(timer); }
  }
}
