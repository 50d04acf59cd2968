//go:build real

package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
)

// heatColours checks that the colours have an order and equal steps for every kind of colour
// vision.
func heatColours(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	openPast(t, tab, smallPast(start), fmt.Sprintf("from=%d&to=%d", start, start+60))
	var wrong []string
	tab.Eval(`import("/assets/heatscale.js").then(({palette, Scale}) => {
		const wrong = [];
		const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
		const lab = ([r, g, b]) => {
			const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b), m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b), s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
			return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s, 0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
		};
		// Machado, Oliveira and Fernandes 2009, severity 1.
		const visions = {
			usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
			protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
			deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
			tritan: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
		};
		for (const [name, matrix] of Object.entries(visions)) {
			const seen = palette(true).map((c) => lab(matrix.map((row) => Math.max(0, Math.min(1, row.reduce((sum, k, i) => sum + k * linear(c[i]), 0))))));
			const steps = [];
			for (let i = 16; i < seen.length; i += 16) {
				if (seen[i][0] <= seen[i - 16][0]) wrong.push(name + ": colour " + i + " is not brighter than the one before");
				steps.push(Math.hypot(...seen[i].map((v, j) => v - seen[i - 16][j])));
			}
			const ratio = Math.max(...steps) / Math.min(...steps);
			if (ratio > (name === "usual" ? 1.4 : 3.5)) wrong.push(name + ": the largest step is " + ratio.toFixed(2) + " times the smallest");
		}
		const scale = new Scale(1000);
		if (scale.place(0) !== -1 || scale.place(1000) !== 1) wrong.push("the ends of the scale");
		const ten = [1000, 100, 10].map((n) => scale.place(n)), first = ten[0] - ten[1], second = ten[1] - ten[2];
		if (Math.abs(first - second) > 0.05) wrong.push("not logarithmic: " + ten);
		return wrong;
	})`, &wrong)
	for _, w := range wrong {
		t.Error(w)
	}
	clean(t, tab)
}

// thousandByThousand measures what one frame costs while users zoom and move.
func thousandByThousand(t *testing.T, tab *real.Tab) {
	tab.Resize(3260, 1000) // a thousand columns of three pixels
	now := time.Now().Unix()
	openPast(t, tab, wideAndLong(1000, 1000, now-1000*60, 60), fmt.Sprintf("all=1&from=%d&to=%d", now-960*60, now))
	tab.Wait("hotparamPage.heat.list.length > 1000 && hotparamPage.heat.map.image.width >= 900")
	picture(t, tab, "heat-1000")
	var frames struct{ Median, P95, Draw, Paint float64 }
	tab.Eval(`(async () => {
		const { heat } = hotparamPage, { map } = heat, next = () => new Promise(requestAnimationFrame), between = [], draws = [];
		heat.reload = () => {}; // frames alone
		let last = await next();
		for (let i = 0; i < 180; i++) {
			heat.zoom(i % 60 < 30 ? 1.03 : 1 / 1.03, map.gutter + 600, i % 7 - 3, false, 400);
			heat.scrollTo(map.top + 5);
			const started = performance.now();
			heat.drawNow();
			draws.push(performance.now() - started);
			const at = await next();
			between.push(at - last);
			last = at;
		}
		const of = (all, part) => all.toSorted((a, b) => a - b)[Math.floor(all.length * part)];
		const started = performance.now();
		heat.loader.data.version++;
		heat.rebuild();
		return { Median: of(between, 0.5), P95: of(between, 0.95), Draw: of(draws, 0.5), Paint: performance.now() - started };
	})()`, &frames)
	t.Logf("1,000 x 1,000: a frame each %.1f ms (median), %.1f ms (95%%); drawing takes %.2f ms; making the picture again takes %.0f ms", frames.Median, frames.P95, frames.Draw, frames.Paint)
	if frames.Draw > 16 {
		t.Errorf("drawing a frame takes %.1f ms, want at most 16", frames.Draw)
	}
	clean(t, tab)
}

// weekOfKeys measures the first view of a week, and the memory of the browser.
func weekOfKeys(t *testing.T, tab *real.Tab) {
	now := time.Now().Unix()
	f := openPast(t, tab, wideAndLong(1000, 7*144, now-7*86400, 600), "last=604800")
	var seen struct{ First, Answer, Heap float64 }
	for range 3 { // other tests may run now
		tab.Open("about:blank")
		tab.Open(f.server.URL + "/#heat?last=604800")
		tab.Wait("hotparamPage?.heat.loader.state === 'ready' && hotparamPage.heat.firstDrawn")
		tab.CollectGarbage()
		tab.Eval(`(() => {
			const [entry] = performance.getEntriesByType("resource").filter((e) => e.name.includes("/api/v1/history"));
			return { First: hotparamPage.heat.firstDrawn, Answer: entry.responseEnd - entry.startTime, Heap: performance.memory.usedJSHeapSize / 2**20 };
		})()`, &seen)
		if seen.First-seen.Answer < 1000 {
			break
		}
	}
	resident := tab.Memory()
	t.Logf("a week of 1,000 keys: the map after %.0f ms, of which the fixture's answer took %.0f ms; %.0f MiB of heap, the tab's process has %d MiB", seen.First, seen.Answer, seen.Heap, resident>>20)
	if seen.First-seen.Answer > 1000 {
		t.Errorf("without the server, the first view takes %.0f ms", seen.First-seen.Answer)
	}
	if resident > 200<<20 {
		t.Errorf("the tab's process has %d MiB, want 200 at most", resident>>20)
	}
	picture(t, tab, "heat-week")
	clean(t, tab)
}
