// The page: it reads and shows. Only that of `hotparam operate` acts, by act.js.

import { Act } from "./act.js";
import { command } from "./commands.js";
import { byId, el, replace, setAttribute, setText } from "./dom.js";
import { bytes, clock, plural, short, visible } from "./format.js";
import { Store } from "./store.js";
import { Stream } from "./stream.js";
import { modeWord, Table } from "./table.js";
import { Detail } from "./detail.js";
import { Heat } from "./heat.js";
import * as panels from "./panels.js";

const store = new Store();
const views = ["hot", "suspects", "controls", "instances", "rules", "events", "heat"];
let view = "hot";
let rulesAnswer = null, rulesVersion = null;
let controls = new Map();
const controlOf = (key) => controls.get(`${key.rule} ${key.key}`);

const table = new Table({
  grid: byId("grid"), head: byId("grid-head"), body: byId("grid-body"), store, controlOf,
  onOpen: (id) => { detail.open(id); table.schedule(); },
  onShown: (shown, wanted) => { showCount(shown); fetchLines(wanted); },
});
const detail = new Detail(byId("detail"), store, {
  controlOf,
  onClose: () => { table.schedule(); byId("grid").focus({ preventScroll: true }); },
});
const heat = new Heat({
  now: () => (store.ready ? store.time() : Date.now()) / 1000,
  onLink: (text) => { heatLink = text; if (view === "heat") link(); },
  ruleWords: (id) => rulesAnswer?.rules.find((r) => r.id === id)?.words,
  onKey: (row) => {
    const found = [...store.hot.values()].find((k) => k.rule === row.rule && k.key.endsWith(row.key) && k.key.startsWith(row.route.split("{")[0]));
    return found && (() => { show("hot"); detail.open(found.id); table.schedule(); });
  },
});
let heatLink = "";

// --- what arrives

const stream = new Stream("/api/v1/view", {
  snapshot: (m) => {
    const open = detail.id === null ? null : store.hot.get(detail.id);
    store.snapshot(m);
    table.order = -1;
    if (open) reopen(open);
    changed(m);
  },
  change: (m) => { store.apply(m); changed(m); },
  event: (e) => { store.event(e); if (view === "events") dirty.add("events"); schedule(); },
  state: (name, words) => {
    setAttribute(byId("link"), "data-state", name);
    setText(byId("link-words"), words);
    linkState = name;
    if (name !== "live") showBanners();
  },
});
let linkState = "connecting";

// --- acting, where the server lets people act

let act = null;
async function mayAct() {
  try {
    const answer = await fetch("/api/v1/session", { cache: "no-store" });
    const session = answer.ok ? await answer.json() : {};
    if (!session.may_act) return;
    act = detail.act = new Act(controlOf);
    document.body.classList.add("acting");
    setText(byId("author"), visible(session.author, 128));
    byId("author").hidden = byId("act-button").hidden = byId("act-keys").hidden = false;
    byId("act-button").addEventListener("click", () => act.open("block"));
    if (detail.id !== null) detail.open(detail.id);
    dirty.add("controls");
    schedule();
  } catch { setTimeout(mayAct, 2000); }
}

// actOnKey opens the dialog for the key that is open or chosen.
function actOnKey(letter) {
  const action = { b: "block", p: "pin", a: "allow", r: "release" }[letter];
  const key = store.hot.get(detail.id ?? table.selected);
  if (!act || !action || !key || view !== "hot") return false;
  const button = act.buttons(key).querySelector(`[data-act=${action}]`);
  button?.click();
  return Boolean(button);
}

// Ids are new after a restart of the aggregator: the open key is found again by its text.
function reopen(open) {
  for (const key of store.hot.values()) {
    if (key.key === open.key && key.rule === open.rule) { detail.id = key.id; table.selected = key.id; return; }
  }
}

const dirty = new Set(views);

function changed(m) {
  if (m.controls) {
    controls = new Map(store.controls.map((c) => [`${c.rule} ${c.key}`, c]));
    dirty.add("controls");
  }
  if (m.suspects) dirty.add("suspects");
  if (m.members) dirty.add("instances");
  if (m.events) dirty.add("events");
  if (m.facts && m.facts.rules_version !== rulesVersion) loadRules(m.facts.rules_version);
  if (m.facts || m.put || m.gone) picks();
  if (view === "controls" && store.controls.length) dirty.add("controls"); // the time that is left
  schedule();
}

let pending = 0;
function schedule() {
  if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); });
}

function draw() {
  if (!store.ready) return;
  showFacts();
  showBanners();
  showCounts();
  if (view === "hot") {
    showEmpty();
    table.draw();
    detail.draw();
    return;
  }
  if (!dirty.has(view)) return;
  dirty.delete(view);
  const node = byId(`view-${view}`);
  if (view === "suspects") panels.suspects(node, store, act);
  if (view === "controls") panels.controls(node, store, act);
  if (view === "instances") panels.members(node, store);
  if (view === "rules") panels.rules(node, rulesAnswer);
  if (view === "events") panels.events(node, store);
}

// --- lines of keys in sight

const asked = new Set();
let asking = false;
async function fetchLines(ids) {
  ids = ids.filter((id) => !asked.has(id)).slice(0, 60);
  if (asking || ids.length === 0) return;
  asking = true;
  ids.forEach((id) => asked.add(id));
  try {
    const answer = await fetch(`/api/v1/view/lines?ids=${ids.join()}`, { cache: "no-store" });
    if (answer.ok) {
      for (const [id, points] of Object.entries((await answer.json()).lines)) store.history(Number(id), points);
      table.schedule();
    }
  } catch { /* the stream says what is wrong */ } finally {
    ids.forEach((id) => asked.delete(id));
    for (const id of ids) { const key = store.hot.get(id); if (key) key.fetched = true; }
    asking = false;
  }
}

async function loadRules(version) {
  rulesVersion = version;
  try {
    const answer = await fetch("/api/v1/rules", { cache: "no-store" });
    if (!answer.ok) return;
    rulesAnswer = await answer.json();
    heat.panel.explain();
    dirty.add("rules");
    schedule();
  } catch { rulesVersion = null; }
}

// --- the head of the page

function fact(name, value, level, more) {
  return el("div", { class: level }, el("dt", {}, name), el("dd", {}, value, more));
}

let factsShape = "";
function showFacts() {
  const f = store.facts;
  setText(byId("namespace"), visible(f.namespace ?? "", 60));
  byId("logout").hidden = !f.token;
  document.title = store.hot.size ? `${store.hot.size} hot · hotparam` : "hotparam";
  const aggregators = store.members.filter((m) => m.role === "aggregator");
  const differ = store.members.filter((m) => panels.judge(m, f, store.time()).rules).length;
  const shape = JSON.stringify([f, aggregators.length, differ]);
  if (shape === factsShape) return;
  factsShape = shape;
  const share = f.memory_max > 0 ? Math.min(1, f.memory_used / f.memory_max) : 0;
  const bar = el("span", { class: share >= 0.97 ? "meter full" : "meter", "aria-hidden": "true" }, el("i"));
  bar.firstChild.style.width = `${(share * 100).toFixed(0)}%`;
  replace(byId("facts"),
    fact("Redis", f.redis?.connected ? "connected" : f.redis?.known ? "away" : "not asked yet", f.redis?.connected ? null : f.redis?.known ? "bad" : "warn"),
    aggregators.length > 0 && fact("Aggregators", String(aggregators.length)),
    fact("Rules", el("code", {}, visible(f.rules_version ?? "", 16)), differ ? "warn" : null, differ ? ` ${differ} ${differ === 1 ? "differs" : "differ"}` : null),
    f.memory_max > 0 && fact("Memory", `${bytes(f.memory_used)} of ${bytes(f.memory_max)}`, share >= 0.97 ? "bad" : null, bar),
    f.memory_max > 0 && fact("Floor", f.floor > 0 ? `${short(f.floor)}: the most counts of a key that can be hidden` : "0, counts are exact"),
    f.version && fact("Version", visible(f.version, 40)));
}

// What is broken has a line of its own; what differs shares one, and the view of the
// instances says what to do about each.
let bannerShape = "";
function showBanners() {
  const f = store.facts;
  const list = [];
  if (linkState === "waiting" && store.ready) list.push(["No connection to the aggregator.", `The data is from ${clock(store.now)}. Connecting again.`]);
  else if (f.redis?.known && !f.redis.connected) list.push(["Redis is unavailable.", `The data was read before. Instances keep their limits until entries expire. ${visible(f.redis.problem ?? "", 300)}`]);
  else if (f.redis?.connected && !f.published) list.push(["No aggregator publishes.", "No key is hot, so none is limited. /-/ready of each aggregator has the reason."]);
  const troubles = panels.troubles(store);
  list.push(...troubles.filter((t) => t.bad).map((t) => [t.title, `${t.names}: ${t.words}`]));
  const minor = troubles.filter((t) => !t.bad);
  const shape = JSON.stringify([list, minor]);
  if (shape === bannerShape) return;
  bannerShape = shape;
  replace(byId("banners"),
    list.map(([title, words]) => el("div", { class: "banner bad" }, el("strong", {}, title), el("span", {}, words))),
    minor.length > 0 && el("div", { class: "banner" }, minor.map((t) => el("span", {}, el("strong", {}, t.title.replace(/\.$/, ": ")), t.names))));
}

function showCounts() {
  const count = (name, n, warn) => {
    const node = byId(`tab-${name}`).querySelector(".count");
    setText(node, n === null ? "" : n.toLocaleString("en"));
    node.classList.toggle("warn", Boolean(warn));
  };
  count("hot", store.hot.size);
  count("suspects", store.suspects.length);
  count("controls", store.controls.length);
  const now = store.time();
  count("instances", store.membersTotal ?? store.members.length, store.members.some((m) => Object.values(panels.judge(m, store.facts, now)).some(Boolean)));
  count("rules", rulesAnswer ? rulesAnswer.rules.length : null);
}

function showCount(shown) {
  const all = store.hot.size;
  setText(byId("shown"), shown === all ? plural(all, "key") : `${shown.toLocaleString("en")} of ${plural(all, "key")}`);
  lastShown = shown;
}
let lastShown = 0;

let emptyShape = "";
function showEmpty() {
  const node = byId("hot-empty");
  const kind = store.hot.size === 0 ? (store.members.length === 0 ? "alone" : "calm") : lastShown === 0 && filtered() ? "filtered" : "";
  byId("grid").hidden = kind === "alone" || kind === "calm" || kind === "filtered";
  byId("grid").previousElementSibling.hidden = kind === "alone" || kind === "calm";
  node.hidden = kind === "";
  byId("quiet").hidden = kind !== "calm" && kind !== "alone";
  if (!byId("quiet").hidden) showQuiet();
  if (kind === emptyShape) return;
  emptyShape = kind;
  if (kind === "calm") replace(node, ...panels.empty("Nothing is hot", `No key reaches its threshold now. To see one, send counts of a key of your rules:`, command("hotparam emit 'GET /search?q=phone' 300 --config hotparam.yaml")).childNodes);
  if (kind === "alone") replace(node, ...panels.empty("No key is hot, and no instance sends counts", "No instance sends heartbeats. If instances run, find the reason:", command("hotparam doctor --config hotparam.yaml"), "To test the path of a count to this page without an instance:", command("hotparam emit 'GET /search?q=phone' 300 --config hotparam.yaml")).childNodes);
  if (kind === "filtered") {
    const clear = el("button", { type: "button", class: "quiet" }, "Clear the filter");
    clear.addEventListener("click", clearFilter);
    replace(node, el("h2", {}, "No key passes the filter"), el("p", {}, `${plural(store.hot.size, "key")} are hot, and none of them has what the filter asks for.`), clear);
  }
}

// What is seen when nothing is hot is drawn when it has changed.
let quietShape = "";
function showQuiet() {
  const shape = JSON.stringify([Boolean(act), store.controls, store.summary, store.events.slice(0, 20).map((e) => e.id)]);
  if (shape === quietShape) return;
  quietShape = shape;
  panels.quiet(byId("quiet"), store, act);
}

// --- filter and sort

const filterText = byId("filter"), filterRule = byId("filter-rule"), filterMode = byId("filter-mode"), sortPick = byId("sort-pick");
const filtered = () => Boolean(filterText.value || filterRule.value || filterMode.value);

function filter() {
  table.setFilter({ text: filterText.value, rule: filterRule.value, mode: filterMode.value });
  byId("grid").hidden = false; // measured again, then hidden if nothing is left
  lastShown = -1;
  table.draw();
  schedule();
}
filterText.addEventListener("input", filter);
filterRule.addEventListener("change", filter);
filterMode.addEventListener("change", filter);

function clearFilter() {
  filterText.value = filterRule.value = filterMode.value = "";
  filter();
  filterText.focus();
}

replace(sortPick, Table.sorts().map(([name, words]) => el("option", { value: name, selected: name === table.sortBy }, words)));
sortPick.addEventListener("change", () => table.sort(sortPick.value));

let picksShape = "";
function picks() {
  const rules = new Set(), modes = new Set();
  for (const key of store.hot.values()) { rules.add(key.rule); modes.add(modeWord(key)); }
  const shape = [...rules].sort().join("\n") + "\n\n" + [...modes].sort().join();
  if (shape === picksShape) return;
  picksShape = shape;
  options(filterRule, "all rules", [...rules].sort());
  options(filterMode, "all modes", [...modes].sort());
}

function options(select, all, values) {
  const chosen = select.value;
  if (chosen && !values.includes(chosen)) values.push(chosen);
  replace(select, el("option", { value: "" }, all), values.slice(0, 200).map((v) => el("option", { value: v, selected: v === chosen }, visible(v, 60))));
}

// --- views

function show(name, focus) {
  view = name;
  for (const other of views) {
    const tab = byId(`tab-${other}`);
    setAttribute(tab, "aria-selected", other === name);
    tab.tabIndex = other === name ? 0 : -1;
    byId(`view-${other}`).hidden = other !== name;
  }
  if (focus) byId(`tab-${name}`).focus();
  byId(`tab-${name}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  if (name === "heat") heat.show(heatLink);
  else heat.hide();
  link();
  dirty.add(name);
  draw();
}

// link makes the address a link to what is shown. What follows # is not sent to servers.
let address = location.hash;
function link() {
  if (location.hash !== address) return; // follow is about to be called for another address
  const wanted = view === "heat" && heatLink ? `heat?${heatLink}` : view;
  if (location.hash.slice(1) !== wanted) history.replaceState(null, "", wanted === "hot" ? location.pathname : `#${wanted}`);
  address = location.hash;
}

// follow shows what a link says.
function follow() {
  address = location.hash;
  const [name, text = ""] = location.hash.slice(1).split(/\?(.*)/s);
  if (!views.includes(name)) return;
  if (name === "heat") heatLink = text;
  show(name);
}
addEventListener("hashchange", follow);

byId("tabs").addEventListener("click", (e) => {
  const tab = e.target.closest("[role=tab]");
  if (tab) show(tab.id.slice(4));
});
byId("tabs").addEventListener("keydown", (e) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  show(views[(views.indexOf(view) + step + views.length) % views.length], true);
});

// --- keys and theme

const themeButton = byId("theme-button");
const showTheme = () => setText(themeButton.querySelector("b"), hotparamTheme.name);
const nextTheme = () => { hotparamTheme.next(); showTheme(); };
themeButton.addEventListener("click", nextTheme);
showTheme();
byId("help-button").addEventListener("click", () => byId("help").showModal());

document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return;
  const typing = e.target.closest("input, select, textarea");
  if (e.key === "Escape") {
    if (view === "heat") heat.escape();
    else if (detail.id !== null) detail.close();
    else if (filtered()) clearFilter();
    return;
  }
  if (typing) {
    if (typing === filterText && (e.key === "ArrowDown" || e.key === "Enter")) { e.preventDefault(); table.move(e.key === "Enter" ? 0 : 1); }
    return;
  }
  const n = Number(e.key);
  if (n >= 1 && n <= views.length) show(views[n - 1]);
  else if (e.key === "/") { e.preventDefault(); if (view !== "heat") show("hot"); const field = view === "heat" ? byId("heat-filter") : filterText; field.focus(); field.select(); }
  else if (e.key === "t") nextTheme();
  else if (e.key === "?") byId("help").showModal();
  else if (actOnKey(e.key)) e.preventDefault();
  else if (view === "hot" && !e.defaultPrevented) {
    const step = { j: 1, k: -1, ...(e.target === document.body && { ArrowDown: 1, ArrowUp: -1 }) }[e.key];
    if (step) { e.preventDefault(); table.move(step); }
  }
});

// --- start

follow();
stream.open();
mayAct();
setInterval(() => { // ages grow, and lines move, even where nothing changes
  if (document.hidden) return;
  if (view === "instances" || view === "controls") dirty.add(view);
  if (view === "hot" && detail.id !== null) detail.load();
  if (view === "heat") heat.tick();
  schedule();
}, 2000);
document.addEventListener("visibilitychange", () => { if (!document.hidden) schedule(); });
globalThis.hotparamPage = { store, table, stream, heat }; // for the console, and tests
