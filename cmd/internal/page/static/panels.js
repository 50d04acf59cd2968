// The other views: suspects, controls, instances, rules, events.

import { at, command } from "./commands.js";
import { el, replace } from "./dom.js";
import { age, bytes, clock, dateTime, plural, rate, shellWord, short, span, visible } from "./format.js";

const most = 500; // rows of one table; the API has the rest

function table(heads, rows) {
  return el("div", { class: "scroll", tabindex: "0" }, el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, heads.map(([words, name]) => el("th", { scope: "col", class: name }, words)))),
    el("tbody", {}, rows)));
}

const keyCell = (text) => el("td", { class: "text" }, el("bdi", { class: "mono" }, visible(text, 400)));
const cell = (text, name) => el("td", { class: name }, text);

export function empty(title, ...words) {
  return el("div", { class: "empty" }, el("h2", {}, title), words.map((w) => (typeof w === "string" ? el("p", {}, w) : w)));
}

// acts returns a cell with the buttons for a key that is not hot, or nothing on a page that only
// reads. The server knows whether its rule has a limit.
const acts = (act, key) => act && el("td", {}, act.buttons({ ...key, limit: key.limit ?? true }));

// keepFocus draws a view again, and returns the focus to the same button.
function keepFocus(node, draw) {
  const { act, of } = node.contains(document.activeElement) ? document.activeElement.dataset : {};
  draw();
  if (of !== undefined) [...node.querySelectorAll("[data-of]")].find((b) => b.dataset.of === of && b.dataset.act === act)?.focus();
}

export function suspects(node, store, act) {
  if (store.suspects.length === 0) {
    replace(node, empty("Nothing is suspect", "A suspect may be hot: what was counted so far does not decide it. Instances send its counts at once, so it becomes hot or leaves within moments."));
    return;
  }
  keepFocus(node, () => replace(node, table([["Rate", "r"], ...(act ? [["Act"]] : []), ["Rule"], ["Key"]], store.suspects.slice(0, most).map((s) =>
    el("tr", {}, cell(rate(s.rate), "r"), acts(act, s), cell(visible(s.rule, 80)), keyCell(s.key)))), rest(store.suspects.length)));
}

// quiet shows what is seen when nothing is hot.
export function quiet(node, store, act) {
  const { near, traffic } = store.summary;
  const lately = store.events.filter((e) => e.type === "cool").slice(0, 8);
  keepFocus(node, () => replace(node,
    traffic.length > 0 && el("h2", {}, "Traffic"),
    traffic.length > 0 && table([["Rate", "r"], ["Keys seen", "r"], ["Rule"], ["Route"]], traffic.map((t) =>
      el("tr", {}, cell(rate(t.rate, t.unit), "r"), cell(t.keys.toLocaleString("en"), "r"), cell(visible(t.rule, 80)), keyCell(t.route)))),
    near.length > 0 && el("h2", {}, "Nearest to being hot"),
    near.length > 0 && table([["Of threshold", "r"], ["Rate", "r"], ["Hot at", "r"], ...(act ? [["Act"]] : []), ["Rule"], ["Key"]], near.map((k) =>
      el("tr", {}, cell(k.near < 0.01 ? "<1%" : `${Math.min(99, Math.round(100 * k.near))}%`, "r"), cell(rate(k.rate, k.unit), "r"), cell(k.threshold ?? "–", "r"), acts(act, k), cell(visible(k.rule, 80)), keyCell(k.key)))),
    lately.length > 0 && el("h2", {}, "Hot lately"),
    lately.length > 0 && table([["Until", "when"], ["Rule"], ["Key"], ["Why"]], lately.map((e) =>
      el("tr", {}, el("td", { class: "when", title: dateTime(Date.parse(e.at)) }, clock(Date.parse(e.at))), cell(visible(e.rule, 80)), keyCell(e.key), cell(visible(e.why, 300), "text"))))));
}

// controls shows the controls, and with act a button to release each.
export function controls(node, store, act) {
  if (store.controls.length === 0 && act) {
    replace(node, empty("No controls in force", "A control says what happens to one key for some time, whatever the rules say. Open a hot key to act on it, or choose Act above for a key that is not listed."));
    return;
  }
  if (store.controls.length === 0) {
    replace(node, empty("No controls in force",
      "A control says what happens to one key for some time, whatever the rules say. This page only reads; a terminal sets controls:",
      ...["block", "pin", "allow"].map((action) => command(`hotparam ${action} 'GET /search?q=phone' --for 10m --why 'INC-1234'${at(store.facts)}`))));
    return;
  }
  const now = store.time(), focused = node.contains(document.activeElement) ? document.activeElement.dataset.release : undefined;
  replace(node, table([["Action"], ...(act ? [["End it"]] : []), ["Key"], ["Rule"], ["Ends in", "r"], ["Since", "when"], ["By"], ["Why"]], store.controls.slice(0, most).map((c) =>
    el("tr", {}, el("td", {}, el("span", { class: `tag ${c.action === "block" ? "bad" : "warn"}` }, c.action)), act && el("td", {}, act.release(c)), keyCell(c.key), cell(visible(c.rule, 80)),
      cell(span(Math.max(0, Date.parse(c.until) - now)), "r"), cell(clock(Date.parse(c.since)), "when"),
      cell([visible(c.by, 128), c.claimed && `claims to be ${visible(c.claimed, 128)}`].filter(Boolean).join(", ")), cell(visible(c.why, 256), "text")))), rest(store.controls.length));
  if (focused !== undefined) [...node.querySelectorAll("[data-release]")].find((b) => b.dataset.release === focused)?.focus();
}

// judge says what is wrong with a member: what the table marks and the banners tell.
export function judge(m, facts, now) {
  return {
    rules: Boolean(m.rules_version && facts.rules_version && m.rules_version !== facts.rules_version),
    clock: m.offset_ms !== null && m.offset_ms !== undefined && Math.abs(m.offset_ms) > 250, // as doctor and the alert
    loss: (m.dropped ?? 0) + (m.lost ?? 0) > 0,
    silent: Boolean(m.role && m.heard && facts.redis?.connected && now - Date.parse(m.heard) > 5000),
    memory: m.memory_max > 0 && m.memory_used >= 0.97 * m.memory_max,
    problem: Boolean(m.problem),
  };
}

// troubles are what members have, with what to do about it.
export function troubles(store) {
  const judged = store.members.map((m) => [m, judge(m, store.facts, store.time())]);
  const found = [];
  const add = (what, bad, title, words) => {
    const all = judged.filter(([, j]) => j[what]).map(([m]) => m);
    if (all.length === 0) return;
    const names = all.slice(0, 3).map((m) => visible(m.name, 60)).join(", ") + (all.length > 3 ? ` and ${all.length - 3} more` : "");
    found.push({ bad, title, names, words: typeof words === "function" ? words(all) : words });
  };
  add("problem", true, "A member reports a problem.", (all) => visible(all[0].problem, 300));
  add("memory", true, "Memory is full.", "keys evict each other, and bounds are wider. Raise aggregator.memory.");
  add("rules", false, "Rules differ.", `not at version ${visible(store.facts.rules_version, 16)}. Give all the same file; a changed one is read within seconds.`);
  add("clock", false, "Clocks are off.", "by more than a quarter of a second. Check NTP on these machines.");
  add("loss", false, "Counts are lost.", "bounds are wider for it. Give the aggregator larger socket buffers, or more readers.");
  add("silent", false, "Silent.", "no heartbeat for five seconds. They have ended, or do not reach Redis.");
  return found;
}

export function members(node, store) {
  if (store.members.length === 0) {
    replace(node, empty("No instance sends heartbeats",
      "Instances send counts to this aggregator, and report their version and clock in Redis. Check that they run with this rules file, and that their counts arrive:",
      command("hotparam doctor --config hotparam.yaml"), command("hotparam emit 'GET /search?q=phone' 300 --config hotparam.yaml")));
    return;
  }
  const now = store.time(), facts = store.facts;
  const unknown = el("span", { class: "dim" }, "unknown");
  const found = troubles(store).filter((t) => !t.bad); // what is broken is above all views
  replace(node,
    store.facts.members_problem && el("p", { class: "hints" }, `Heartbeats cannot be read: ${visible(store.facts.members_problem, 300)}`),
    found.length > 0 && el("ul", { class: "hints" }, found.map((t) => el("li", {}, el("strong", {}, t.title), ` ${t.names}: ${t.words}`))),
    table([["Name"], ["Role"], ["Rules"], ["Clock", "r"], ["Lost in a minute", "r"], ["Memory", "r"], ["Floor", "r"], ["Heard", "r"], ["Up", "r"], ["Program"], ["Problem"]], store.members.map((m) => {
      const bad = judge(m, facts, now);
      return el("tr", {},
        el("td", { class: "name" }, el("bdi", { class: "mono" }, visible(m.name, 120))), cell(m.role || "instance"),
        el("td", { class: bad.rules ? "when differs" : "when" }, m.rules_version ? [el("code", {}, visible(m.rules_version, 16)), bad.rules && " differs"] : unknown.cloneNode(true)),
        el("td", { class: bad.clock ? "r differs" : "r" }, m.offset_ms === null || m.offset_ms === undefined ? unknown.cloneNode(true) : offset(m.offset_ms)),
        el("td", { class: bad.loss ? "r differs" : "r" }, m.dropped === undefined && m.lost === undefined ? unknown.cloneNode(true) : losses(m)),
        el("td", { class: bad.memory ? "r broken" : "r" }, m.memory_used ? bytes(m.memory_used) + (m.memory_max ? ` of ${bytes(m.memory_max)}` : "") : "–"),
        cell(m.role === "aggregator" ? short(m.floor ?? 0) : "–", "r"),
        el("td", { class: bad.silent ? "r differs" : "r" }, m.heard ? `${span(now - Date.parse(m.heard))} ago` : "–"),
        cell(m.started ? age(now - Date.parse(m.started)) : "–", "r"), cell(visible(m.program ?? "", 40)),
        el("td", { class: bad.problem ? "text broken" : "text" }, visible(m.problem ?? "", 400)));
    })),
    store.membersTotal > store.members.length && el("p", { class: "dim" }, `${store.members.length} of ${store.membersTotal}: those that differ come first. /api/v1/instances has all.`));
}

const offset = (ms) => (Math.abs(ms) < 1 ? "0 ms" : `${ms > 0 ? "+" : "−"}${span(ms)}`);

function losses(m) {
  const parts = [];
  if (m.lost) parts.push(`${short(m.lost)} on the way`);
  if (m.dropped) parts.push(`${short(m.dropped)} dropped`);
  return parts.join(", ") || "none";
}

export function rules(node, answer) {
  if (!answer) { replace(node, el("p", { class: "dim" }, "Loading…")); return; }
  replace(node, el("h2", {}, `Namespace ${visible(answer.namespace, 80)}, version ${visible(answer.version, 40)}: the rules in force at this aggregator`),
    el("ul", { class: "rules" }, answer.rules.map((r) => {
      const text = r.words.startsWith(`${r.id}: `) ? r.words.slice(r.id.length + 2) : r.words;
      return el("li", {}, el("b", {}, visible(r.id, 120)), el("p", {}, visible(text)));
    })),
    (answer.also ?? []).map((words) => el("p", { class: "dim" }, `${words}.`)));
}

const eventTags = { hot: "hot", cool: "", block: "bad", pin: "warn", allow: "warn" };

export function events(node, store) {
  if (store.events.length === 0) {
    replace(node, empty("No events yet", "Keys that become hot and cool, and the controls of operators, appear here as they happen. Programs and terminals can read the same stream:",
      command(`curl -N ${shellWord(`${location.origin}/api/v1/events`)}`), command(`hotparam watch --json${at(store.facts)}`)));
    return;
  }
  replace(node, table([["When", "when"], ["What"], ["Key"], ["Rule"], ["Why"], ["By"]], alike(store.events).map(([e, ...others]) =>
    el("tr", {}, el("td", { class: "when", title: dateTime(Date.parse(e.at)) }, clock(Date.parse(e.at))),
      el("td", {}, el("span", { class: `tag ${eventTags[e.type] ?? ""}`.trim() }, others.length ? `${e.type} ×${others.length + 1}` : e.type)),
      others.length ? manyKeys([e, ...others]) : keyCell(e.key), cell(visible(e.rule, 80)), cell(others.length ? "" : visible(e.why, 300), "text"), cell(visible(e.by, 128))))));
}

// alike puts events of one kind and rule that follow each other within seconds into one group,
// if there are more than a few.
function alike(events) {
  const few = 3, within = 5000; // ms
  const groups = [];
  for (const e of events) {
    const group = groups.at(-1), last = group?.at(-1);
    if (last && last.type === e.type && last.rule === e.rule && last.by === e.by && Math.abs(Date.parse(last.at) - Date.parse(e.at)) < within) group.push(e);
    else groups.push([e]);
  }
  return groups.flatMap((group) => (group.length > few ? [group] : group.map((e) => [e])));
}

const open = new Set(); // the ids of first events of groups whose keys are shown

function manyKeys(group) {
  const first = group[0].id;
  const more = el("details", { open: open.has(first) }, el("summary", {}, el("bdi", { class: "mono" }, visible(group[0].key, 200)), ` and ${group.length - 1} more`),
    group.slice(1).map((e) => el("div", {}, el("bdi", { class: "mono" }, visible(e.key, 400)))));
  more.addEventListener("toggle", () => (more.open ? open.add(first) : open.delete(first)));
  return el("td", { class: "text" }, more);
}

function rest(n) {
  return n > most && el("p", { class: "dim" }, `The first ${most} of ${plural(n, "row")}; the API has all.`);
}
