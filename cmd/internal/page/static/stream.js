// The server's stream: it is opened again whenever it ends, after a wait that grows.

const silence = 20_000; // ms without a word, after which a connection is given up; the server sends one each 10 s

export class Stream {
  // on: {snapshot, change, event, state(name, words)}
  constructor(url, on) {
    this.url = url;
    this.on = on;
    this.wait = 500;
  }

  open() {
    this.close();
    this.on.state("connecting", "Connecting");
    const source = this.source = new EventSource(this.url);
    const take = (name, f) => source.addEventListener(name, (e) => {
      if (this.source !== source) return;
      this.heard();
      f(e.data === undefined || e.data === "" ? null : JSON.parse(e.data));
    });
    take("snapshot", (m) => {
      this.wait = 500;
      this.on.state("live", "Live");
      this.on.snapshot(m);
    });
    take("change", (m) => this.on.change(m));
    take("beat", () => {});
    for (const name of ["hot", "cool", "pin", "block", "allow", "release", "expired"]) take(name, (m) => this.on.event(m));
    take("cut", (m) => this.again(m?.why ?? "the server ended the stream"));
    source.addEventListener("error", () => { if (this.source === source) this.failed(); });
    this.heard();
  }

  heard() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.again("no answer from the server"), silence);
  }

  // failed finds out why: a stream does not say with which status it was refused.
  async failed() {
    this.close();
    let words = "the aggregator does not answer";
    try {
      const answer = await fetch("/api/v1/session", { cache: "no-store" });
      if (answer.status === 401) { location.assign("/login"); return; }
      const told = await answer.json();
      words = answer.ok ? told.streams_full ? "too many pages are open at this aggregator" : "the stream ended" : told.error ?? words;
    } catch { /* it is away, as it says already */ }
    this.again(words);
  }

  again(words) {
    this.close();
    const wait = this.wait * (0.8 + 0.4 * Math.random());
    this.wait = Math.min(10_000, this.wait * 1.8);
    this.on.state("waiting", `Reconnecting: ${words}`);
    this.timer = setTimeout(() => this.open(), wait);
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
