// The theme is set before anything is drawn: a classic script, not a module.
"use strict";
(() => {
  const names = ["auto", "light", "dark"];
  const stored = () => {
    try { return localStorage.getItem("hotparam.theme"); } catch { return null; }
  };
  const set = (name) => {
    document.documentElement.dataset.theme = names.includes(name) ? name : "auto";
  };
  set(stored());
  globalThis.hotparamTheme = {
    get name() { return document.documentElement.dataset.theme; },
    next() {
      set(names[(names.indexOf(this.name) + 1) % names.length]);
      try { localStorage.setItem("hotparam.theme", this.name); } catch { /* it lasts until the page is closed */ }
      return this.name;
    },
  };
})();
