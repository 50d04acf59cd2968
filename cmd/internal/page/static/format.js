// Numbers, times and others' text, as people read them.

const requests = "requests";

// A number with at most three digits before the point, and a letter.
export function short(n) {
  if (!Number.isFinite(n)) return "–";
  const sign = n < 0 ? "-" : "";
  n = Math.abs(n);
  for (const [size, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (n >= size) {
      const scaled = n / (letter === "k" ? 1e3 : size);
      return sign + (scaled >= 100 ? scaled.toFixed(0) : scaled.toFixed(1)) + letter;
    }
  }
  if (n >= 100 || Number.isInteger(n)) return sign + n.toFixed(0);
  return sign + n.toFixed(1);
}

export function bytes(n) {
  for (const [size, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (n >= size) return `${(n / size).toFixed(n >= 10 * size ? 0 : 1)} ${unit}`;
  }
  return `${n} B`;
}

// A number of a rule's unit: requests have no word, bytes have theirs.
export function amount(n, unit) {
  switch (unit) {
    case "bytes": return decimalBytes(n);
    case "ms": return `${short(n)} ms`;
    case undefined: case "": case requests: return short(n);
  }
  return `${short(n)} ${unit}`;
}

function decimalBytes(n) {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]) {
    if (n >= size) return `${(n / size).toFixed(1)} ${unit}`;
  }
  return `${n.toFixed(0)} B`;
}

export const rate = (n, unit) => `${amount(n, unit)}/s`;

// The bounds of a count: 212–230, 212 or more.
export function bounds(low, high, unit) {
  const a = amount(low, unit);
  if (high === null || high === undefined) return `≥ ${a}`;
  const b = amount(high, unit);
  return a === b ? a : `${a}–${b}`;
}

// A length of time: 850 ms, 4.2 s, 3 min 20 s, 2 h 5 min.
export function span(ms) {
  const s = Math.abs(ms) / 1000;
  if (s < 1) return `${Math.round(Math.abs(ms))} ms`;
  if (s < 10) return `${Number.isInteger(s) ? s : s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${pad(Math.floor(s) % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${pad(Math.floor(s / 60) % 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

// The same with one unit, for narrow columns.
export function age(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 100) return `${Math.floor(s)} s`;
  if (s < 6000) return `${Math.floor(s / 60)} min`;
  if (s < 172800) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

const pad = (n) => String(n).padStart(2, "0");

export function clock(ms) {
  const d = new Date(ms);
  return `${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
}

export function dateTime(ms) {
  const d = new Date(ms);
  return `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())} ${clock(ms)}`;
}

export const plural = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

// Others' text with a visible sign for each character that has none, or that moves the
// text around it: what is shown is what is there.
const invisible = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3164\ufeff\ufff9-\ufffc\u{e0000}-\u{e0fff}]/gu;

export function visible(text, most = Infinity) {
  text = String(text ?? "");
  const cut = text.length > most;
  if (cut) text = text.slice(0, most);
  text = text.replace(invisible, (c) => {
    const code = c.codePointAt(0);
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
  return cut ? `${text}…` : text;
}

// A word of a shell, so that a command can be copied whatever the key is; null where it
// has what no terminal should be given.
export function shellWord(text) {
  invisible.lastIndex = 0;
  if (invisible.test(text)) return null;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
