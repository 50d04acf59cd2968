// Pin, block, allow and release: a dialog that says what the action would have done, then does it.

import { byId, el, replace, setText } from "./dom.js";
import { clock, visible } from "./format.js";

const actions = {
  block: { word: "Block", does: "Each request for this key is refused with 403.", done: "blocked" },
  pin: { word: "Pin", does: "This key is held to its rule's limit, hot or not.", done: "pinned" },
  allow: { word: "Allow", does: "The rule does not limit this key. Its requests are still counted.", done: "allowed" },
  release: { word: "Release", does: "The control of this key ends. Its rule decides again.", done: "released" },
};
const lengths = [["5m", "5 min"], ["10m", "10 min"], ["30m", "30 min"], ["1h", "1 h"], ["4h", "4 h"], ["24h", "24 h"]];

// post sends a request that acts. The header is one that no form of another site can send.
async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST", cache: "no-store", headers: { "Content-Type": "application/json", "Hotparam-Act": "1" },
    body: JSON.stringify(body), signal: AbortSignal.timeout(15_000),
  });
  if (answer.status === 401) location.assign("/login");
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(told.error ?? `the server answers ${answer.status}`);
  return told;
}

export class Act {
  constructor(controlOf) {
    this.controlOf = controlOf;
    this.title = el("h2", { id: "act-title" });
    this.subject = el("div", { class: "act-key" });
    this.key = el("input", { id: "act-words", autocomplete: "off", autocapitalize: "off", spellcheck: "false", placeholder: "GET /search?q=phone" });
    this.pick = el("select", { id: "act-action" }, ["block", "pin", "allow", "release"].map((a) => el("option", { value: a }, actions[a].word)));
    this.search = el("div", { class: "act-fields" }, el("label", { for: "act-words" }, "Key"), this.key, el("label", { for: "act-action" }, "Action"), this.pick);
    this.does = el("p", { class: "dim" });
    this.effect = el("p", { class: "act-effect", role: "status" });
    this.note = el("p", { class: "act-note" });
    this.span = el("select", { id: "act-for" }, lengths.map(([value, words]) => el("option", { value, selected: value === "10m" }, words)));
    this.spanLabel = el("label", { for: "act-for" }, "For");
    this.whyLabel = el("label", { for: "act-why" }, "Why");
    this.why = el("input", { id: "act-why", maxlength: "256", autocomplete: "off", placeholder: "INC-1234, others see it" });
    this.problem = el("p", { class: "wrong", role: "alert", hidden: true });
    this.go = el("button", { class: "primary" });
    const cancel = el("button", { type: "button", class: "quiet" }, "Cancel");
    const form = el("form", {}, this.title, this.subject, this.search, this.does, this.effect, this.note,
      el("div", { class: "act-fields" }, this.spanLabel, this.span, this.whyLabel, this.why), this.problem, el("div", { class: "act-buttons" }, cancel, this.go));
    this.dialog = el("dialog", { id: "act", "aria-labelledby": "act-title" }, form);
    document.body.append(this.dialog);
    this.done = el("p", { class: "acted", role: "status", hidden: true });
    byId("banners").after(this.done);
    cancel.addEventListener("click", () => this.dialog.close());
    this.dialog.addEventListener("close", () => { if (!this.dialog.open) this.forget(); }); // it may be open again
    form.addEventListener("submit", (e) => { e.preventDefault(); this.submit(); });
    this.span.addEventListener("change", () => this.draw());
    this.key.addEventListener("change", () => this.ask());
    this.pick.addEventListener("change", () => { this.action = this.pick.value; this.draw(); this.ask(); });
  }

  // buttons returns the buttons for a key. Without a limit there is nothing to pin to or to lift.
  buttons(key) {
    const control = this.controlOf(key);
    const names = [control?.action !== "block" && "block", key.limit && control?.action !== "pin" && "pin", (key.limit || key.hold) && control?.action !== "allow" && "allow", control && "release"];
    return el("div", { class: "acts", role: "group", "aria-label": "Act on this key" }, names.filter(Boolean).map((name) => {
      const button = el("button", { type: "button", "data-act": name, "data-of": `${key.rule} ${key.key}`, "aria-label": `${actions[name].word} ${visible(key.key, 200)}` }, actions[name].word);
      button.addEventListener("click", () => this.open(name, key));
      return button;
    }));
  }

  // release returns the button that ends a control.
  release(control) {
    const words = `${control.rule} ${control.key}`;
    const button = el("button", { type: "button", class: "quiet", "data-release": words, "aria-label": `Release ${visible(words, 200)}` }, "Release");
    button.addEventListener("click", () => this.open("release", control));
    return button;
  }

  // open opens the dialog for a key, or without one for a key that the person names.
  open(action, key) {
    this.forget();
    this.action = this.pick.value = action;
    this.words = key ? `${key.rule} ${key.key}` : null;
    this.search.hidden = Boolean(key);
    this.subject.hidden = !key;
    replace(this.subject, key && el("bdi", { class: "mono" }, visible(key.key, 2000)), key && el("span", { class: "tag" }, visible(key.rule, 80)));
    this.key.value = this.why.value = "";
    this.span.value = "10m";
    this.draw();
    this.dialog.showModal();
    (key ? this.why : this.key).focus();
    this.ask();
  }

  // forget drops the confirmation, which is good for one action.
  forget() {
    clearTimeout(this.again);
    this.confirmation = null;
    this.asked = (this.asked ?? 0) + 1; // answers that come later are for another
    setText(this.effect, "");
    setText(this.note, "");
    this.problem.hidden = true;
  }

  draw() {
    const { word, does } = actions[this.action];
    const ends = this.action === "release";
    setText(this.title, this.words ? `${word} this key` : "Act on a key");
    setText(this.does, does);
    this.span.hidden = this.spanLabel.hidden = ends;
    this.why.required = !ends;
    setText(this.go, ends ? word : `${word} for ${this.span.selectedOptions[0].textContent}`);
    this.go.classList.toggle("danger", this.action === "block");
  }

  // ask asks what the action would have done, and for the confirmation.
  async ask() {
    this.forget();
    const words = this.words ?? this.key.value.trim();
    if (!words) return;
    const asked = this.asked;
    setText(this.effect, "Asking what it would have done…");
    try {
      const told = await post("/api/v1/act/confirmation", { key: words, action: this.action });
      if (asked !== this.asked) return;
      this.confirmation = told.confirmation;
      setText(this.effect, told.effect);
      setText(this.note, told.note ? visible(told.note, 600) : "");
      this.again = setTimeout(() => this.ask(), (told.seconds - 5) * 1000);
    } catch (e) {
      if (asked === this.asked) { setText(this.effect, ""); this.fail(e); }
    }
  }

  async submit() {
    if (!this.confirmation && !this.busy) await this.ask();
    if (!this.confirmation || this.busy) return;
    this.busy = this.go.disabled = true;
    this.problem.hidden = true;
    try {
      const c = await post("/api/v1/act", { confirmation: this.confirmation, for: this.action === "release" ? "" : this.span.value, why: this.why.value.trim() });
      const until = this.action === "release" ? "" : ` until ${clock(Date.parse(c.until))}`;
      const dismiss = el("button", { type: "button", class: "quiet" }, "Close");
      dismiss.addEventListener("click", () => { this.done.hidden = true; });
      replace(this.done, el("span", {}, `${visible(c.key, 200)} is ${actions[this.action].done}${until}. All instances obey within a second.`), dismiss);
      this.done.hidden = false;
      this.dialog.close();
    } catch (e) {
      await this.ask(); // the confirmation may be used up
      this.fail(e);
    } finally { this.busy = this.go.disabled = false; }
  }

  fail(e) {
    setText(this.problem, e.name === "TimeoutError" ? "No answer within 15 s. Look at the controls before you try again." : visible(e.message, 600));
    this.problem.hidden = false;
  }
}
