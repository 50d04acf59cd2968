// Pointers, wheel and keys on the heat map. Each becomes a call of the view.

const still = 4; // px that a click may move

// listen connects an element to heat, which has a map, and methods for what users do.
export function listen(node, heat) {
  const pointers = new Map(); // id → {x, y, startX, startY}
  let pinch = null, brushing = null, scrolling = null;

  const place = (e) => {
    const box = node.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  };

  node.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    const p = place(e);
    pointers.set(e.pointerId, { ...p, startX: p.x, startY: p.y });
    node.setPointerCapture(e.pointerId);
    if (pointers.size === 2) {
      brushing = scrolling = null;
      heat.setBrush(null);
      pinch = spread();
      return;
    }
    const hit = heat.map.hit(p.x, p.y);
    if (hit.part === "cell" && hit.isRow) brushing = hit;
    else if (hit.part === "name") scrolling = { y: p.y, top: heat.map.top };
  });

  node.addEventListener("pointermove", (e) => {
    const p = place(e), known = pointers.get(e.pointerId);
    if (!known) { heat.hover(heat.map.hit(p.x, p.y)); return; }
    Object.assign(known, p);
    if (pinch && pointers.size === 2) {
      const next = spread();
      heat.zoom(next.size / pinch.size, pinch.x, next.x - pinch.x, false);
      pinch = next;
    } else if (scrolling) heat.scrollTo(scrolling.top + scrolling.y - p.y);
    else if (brushing && moved(known)) heat.setBrush(brushing, heat.map.hit(p.x, p.y));
  });

  const end = (e) => {
    const known = pointers.get(e.pointerId);
    pointers.delete(e.pointerId);
    if (!known) return;
    if (pinch) {
      if (pointers.size === 0) pinch = null;
      return;
    }
    if (e.type === "pointercancel") heat.setBrush(null);
    else if (!moved(known)) heat.click(heat.map.hit(known.x, known.y));
    else if (brushing) heat.openBrush();
    brushing = scrolling = null;
  };
  node.addEventListener("pointerup", end);
  node.addEventListener("pointercancel", end);
  node.addEventListener("pointerleave", () => heat.hover(null));

  function spread() {
    const [a, b] = pointers.values();
    return { x: (a.x + b.x) / 2, size: Math.max(20, Math.hypot(a.x - b.x, a.y - b.y)) };
  }

  const moved = (p) => Math.hypot(p.x - p.startX, p.y - p.startY) > still;

  node.addEventListener("wheel", (e) => {
    e.preventDefault();
    const p = place(e), unit = [1, 16, 200][e.deltaMode] ?? 1;
    const dx = e.deltaX * unit, dy = e.deltaY * unit;
    if (e.shiftKey || heat.map.hit(p.x, p.y).part === "name") heat.scrollTo(heat.map.top + dy + dx);
    else if (Math.abs(dx) > Math.abs(dy)) heat.zoom(1, p.x, -dx);
    else heat.zoom(Math.exp(-dy * (e.ctrlKey ? 0.01 : 0.002)), p.x, 0, true, p.y);
  }, { passive: false });

  // Returns true if the key is of the map.
  const keys = {
    ArrowDown: (e) => heat.move(1, 0, e.shiftKey), ArrowUp: (e) => heat.move(-1, 0, e.shiftKey),
    ArrowRight: (e) => heat.move(0, 1, e.shiftKey), ArrowLeft: (e) => heat.move(0, -1, e.shiftKey),
    PageDown: () => heat.move(10, 0), PageUp: () => heat.move(-10, 0), Home: () => heat.move(0, -Infinity), End: () => heat.move(0, Infinity),
    Enter: () => heat.openCursor(), " ": () => heat.toggleCursor(),
    "+": () => heat.zoomBy(2), "=": () => heat.zoomBy(2), "-": () => heat.zoomBy(0.5), Backspace: () => heat.back(),
    "<": () => heat.pan(-0.5), ">": () => heat.pan(0.5),
  };
  node.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key](e);
  });
}
