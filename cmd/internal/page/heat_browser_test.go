//go:build real

package page

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/live"
)

func TestHeatMapInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser: left out by -short")
	}
	t.Parallel()
	browser := real.StartChromium(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *real.Tab)
	}{
		{"a day with five incidents", dayOfIncidents},
		{"an answer of a real history", realAnswer},
		{"without a history", withoutHistory},
		{"the keyboard is enough", heatByKeyboard},
		{"brush, explain and what if", brushAndWhatIf},
		{"a link keeps the view", linkKeepsView},
		{"the filter reaches all keys", filterReachesAll},
		{"the present is followed", followsPresent},
		{"hostile values stay text", hostileHeat},
		{"small screens", heatOnSmallScreens},
		{"colours", heatColours},
		{"without barriers", heatWithoutBarriers},
		{"a thousand rows of a thousand columns", thousandByThousand},
		{"a week of a thousand keys", weekOfKeys},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, browser.Tab(t, 1360, 820)) })
	}
}

// openPast opens the heat map of a past.
func openPast(t *testing.T, tab *real.Tab, past http.Handler, link string) *fixture {
	t.Helper()
	view := newFakeView(t)
	f := &fixture{past: past}
	f.serve(t, view, "")
	view.show(&live.Snapshot{Published: true})
	tab.Open(f.server.URL + "/#heat?" + link)
	tab.Wait("hotparamPage.heat.loader.state === 'ready' && hotparamPage.heat.map.frames > 0")
	return f
}

// realAnswer shows the answer that package history promises.
func realAnswer(t *testing.T, tab *real.Tab) {
	answer, err := os.ReadFile("../history/testdata/view.json")
	if err != nil {
		t.Fatal(err)
	}
	openPast(t, tab, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }), "colour=requests&from=1764340000&to=1764340060")
	var labels string
	tab.Eval("hotparamPage.heat.list.map((n) => n.label).join(', ')", &labels)
	if want := "GET /search · q, %C3%A4pfel, phone, all other values"; labels != want {
		t.Errorf("rows %q, want %q", labels, want)
	}
	var seen struct {
		Low, Refused float64
		High         *float64
		Marks, Gaps  int
	}
	tab.Eval(`(() => {
		const { heat } = hotparamPage, { data } = heat.loader, { low, high, refused } = heat.list[0].amounts(data);
		return { Low: low[1], High: high[1], Refused: refused[1], Marks: data.marks.length, Gaps: data.gaps.length };
	})()`, &seen)
	if seen.Low != 980+4230 || seen.High != nil || seen.Refused != 640 || seen.Marks != 5 || seen.Gaps != 1 {
		t.Errorf("%+v", seen)
	}
	picture(t, tab, "heat-answer")
	clean(t, tab)
}

func withoutHistory(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.show(&live.Snapshot{Published: true})
	tab.Open(f.server.URL + "/#heat")
	tab.Wait("document.getElementById('heat-empty').innerText.includes('aggregator: {history: {}}') && document.getElementById('heat-frame').hidden")
	picture(t, tab, "heat-off")
	tab.Press("1")
	tab.Wait("!document.getElementById('view-hot').hidden && location.hash === ''")
	for _, problem := range tab.Problems() { // the browser reports the 404
		if !strings.Contains(problem, "404") {
			t.Error(problem)
		}
	}
}

// cellWords is what the page says of a cell.
const heatWords = "document.getElementById('heat-words').textContent"

func heatByKeyboard(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	openPast(t, tab, smallPast(start), fmt.Sprintf("colour=requests&from=%d&to=%d", start, start+60))
	tab.Press("Tab")
	tab.Eval("document.getElementById('heat-frame').focus()", nil)
	tab.Press("ArrowDown", "ArrowDown", "Home")
	tab.Wait(heatWords + ".startsWith('GET /search › q (search-terms) › lamp') || " + heatWords + ".startsWith('GET /search · q')")
	tab.Press("End")
	tab.Wait(heatWords + ".includes('20 requests (20/s)') || " + heatWords + ".includes('10 requests (10/s)')")
	tab.Wait("document.getElementById('heat-found').innerText.includes('no data')")
	picture(t, tab, "heat-keyboard")
	// Space folds the route, and unfolds it again.
	rows := func(n int) { t.Helper(); tab.Wait(fmt.Sprintf("hotparamPage.heat.list.length === %d", n)) }
	rows(4)
	tab.Press("ArrowUp", "ArrowUp", "ArrowUp", " ")
	rows(1)
	tab.Press(" ")
	rows(4)
	// Enter lists the keys of the cell, Escape closes the list and returns the focus.
	tab.Press("Enter")
	tab.Wait("!document.getElementById('heat-panel').hidden && document.activeElement.closest('#heat-panel')")
	tab.Wait("document.querySelectorAll('#heat-panel tbody tr').length === 3")
	tab.Press("Escape")
	tab.Wait("document.getElementById('heat-panel').hidden && document.activeElement.id === 'heat-frame'")
	// Shift and arrows choose a rectangle.
	tab.Press("ArrowDown", "ArrowDown", "ArrowDown", "End")
	tab.Eval("for (const key of ['ArrowUp', 'ArrowLeft', 'ArrowLeft']) document.getElementById('heat-frame').dispatchEvent(new KeyboardEvent('keydown', {key, shiftKey: true, bubbles: true, cancelable: true}))", nil)
	tab.Press("Enter")
	tab.Wait("document.querySelector('#heat-panel tbody').innerText.includes('600')") // three seconds of 200
	tab.Press("Escape")
	// Zoom, and back to the time before.
	length := "(() => { const [a, b] = hotparamPage.heat.view.times(0); return Math.round(b - a); })()"
	tab.Press("+")
	tab.Wait(length + " === 30")
	tab.Press("Backspace")
	tab.Wait(length + " === 60")
	// The same as a table.
	tab.Eval("document.getElementById('heat-table-button').click()", nil)
	tab.Wait("document.querySelectorAll('#heat-table tbody tr').length === 4 + 2 && document.getElementById('heat-frame').hidden")
	tab.Wait("document.querySelector('#heat-table').innerText.includes('no data')")
	picture(t, tab, "heat-table")
	clean(t, tab)
}

func brushAndWhatIf(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	openPast(t, tab, smallPast(start), fmt.Sprintf("colour=requests&from=%d&to=%d", start, start+60))
	// A drag over all rows, from second 30 on.
	tab.Eval(`(() => {
		const frame = document.getElementById('heat-frame'), box = frame.getBoundingClientRect(), map = hotparamPage.heat.map;
		const at = (type, x, y) => frame.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1, bubbles: true}));
		frame.setPointerCapture = () => {};
		at('pointerdown', map.x(`+fmt.Sprint(start+30)+`) + 3, map.y(0) + 4);
		at('pointermove', map.x(`+fmt.Sprint(start+45)+`), map.y(2));
		at('pointermove', map.x(`+fmt.Sprint(start+60)+`) - 3, map.y(3) + 4);
		at('pointerup', map.x(`+fmt.Sprint(start+60)+`) - 3, map.y(3) + 4);
	})()`, nil)
	panel := "document.getElementById('heat-panel').innerText"
	tab.Wait(panel + ".includes('3 keys') && " + panel + ".includes('6000') && " + panel + ".includes('4500')")
	tab.Wait(panel + ".includes('GET /search by q: hot at 200/s')") // what the rule says
	tab.Wait(panel + ".includes('212-230 in 1s')")                  // what happened
	tab.Eval("(() => { const limit = document.getElementById('heat-limit'); limit.value = '20'; limit.dispatchEvent(new Event('input')); })()", nil)
	// In columns of a second both assumptions agree: 200-20 in each of 30, and the burst of the first.
	tab.Wait("document.getElementById('heat-limit-words').textContent.startsWith('It would have refused 5380 of 6900')")
	picture(t, tab, "heat-panel")
	tab.Eval("[...document.querySelectorAll('#heat-panel button')].find((b) => b.textContent === 'Zoom to this time').click()", nil)
	tab.Wait(fmt.Sprintf("location.hash.includes('from=%d&to=%d')", start+30, start+60))
	// In columns of 10 s the answer is a range.
	var least, most float64
	tab.Eval(`import("/assets/heatpanel.js").then(({refusedBy}) => refusedBy(20, {low: [400], high: [420]}, {seconds: () => 10}, 0, 1))`, &[2]*float64{&least, &most})
	if least != 180 || most != 380 {
		t.Errorf("a limit of 20/s refuses %v to %v of 400 to 420 in 10 s, want 180 to 380", least, most)
	}
	var known string
	tab.Eval(`import("/assets/heatpanel.js").then(({refusedBy}) => JSON.stringify(refusedBy(20, {low: [400], high: [NaN]}, {seconds: () => 10}, 0, 1)))`, &known)
	if known != "[180,null]" {
		t.Errorf("without a high bound: %s, want [180,null]", known)
	}
	clean(t, tab)
}

func linkKeepsView(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	f := openPast(t, tab, smallPast(start), fmt.Sprintf("colour=requests&from=%d&to=%d", start, start+60))
	tab.Eval("(() => { const pick = document.getElementById('heat-colour'); pick.value = 'ms'; pick.dispatchEvent(new Event('change')); })()", nil)
	tab.Wait("hotparamPage.heat.list.length === 2 && location.hash.includes('colour=ms')")
	tab.Eval("document.getElementById('heat-frame').focus()", nil)
	tab.Press(" ")
	tab.Wait("hotparamPage.heat.list.length === 1 && location.hash.includes('fold=')")
	var link string
	tab.Eval("location.hash", &link)
	tab.Open("about:blank")
	tab.Open(f.server.URL + "/" + link)
	tab.Wait("hotparamPage?.heat.list?.length === 1 && hotparamPage.heat.unit === 'ms' && hotparamPage.heat.view.window[0] === " + fmt.Sprint(start))
	// It keeps a selection, on another screen too.
	tab.Eval("hotparamPage.heat.openFinding({rows: [hotparamPage.heat.list[0].leaves[0]], times: ["+fmt.Sprintf("%d, %d", start+30, start+45)+"]})", nil)
	tab.Wait("location.hash.includes('chosen=')")
	var before, after string
	const selection = "document.querySelector('#heat-panel h2').innerText + document.querySelector('#heat-panel tbody').innerText"
	tab.Eval(selection, &before)
	tab.Eval("location.hash", &link)
	tab.Open("about:blank")
	tab.Resize(800, 500)
	tab.Open(f.server.URL + "/" + link)
	tab.Wait("hotparamPage?.heat?.panel?.isOpen")
	if tab.Eval(selection, &after); after != before || before == "" {
		t.Errorf("the selection was\n%s\nand the link shows\n%s", before, after)
	}
	tab.Press("Escape")
	tab.Wait("!location.hash.includes('chosen=')")
	// A link in an open page is followed; one that is garbage keeps the defaults.
	tab.Eval("location.hash = '#heat?last=900&filter=lamp'", nil)
	tab.Wait("hotparamPage.heat.view.last === 900 && document.getElementById('heat-filter').value === 'lamp'")
	tab.Eval("location.hash = '#heat?from=x&to=-5&last=1e99&colour=%FF&open=%00'", nil)
	tab.Wait("hotparamPage.heat.view.last === 31 * 86400")
	clean(t, tab)
}

func followsPresent(t *testing.T, tab *real.Tab) {
	now := time.Now().Unix()
	p := wideAndLong(20, 4000, now-3600, 1)
	openPast(t, tab, p, "last=900")
	first := len(p.questions())
	tab.Wait("hotparamPage.heat.loader.data.version > 1")
	// Only the newest columns were asked for again.
	asked := p.questions()[first]
	values, err := url.ParseQuery(asked)
	if err != nil {
		t.Fatal(err)
	}
	from, _ := strconv.ParseInt(values.Get("from"), 10, 64)
	if from < now-60 {
		t.Errorf("to follow the present, the page asked for %s, %d s ago", asked, now-from)
	}
	var rows []string
	tab.Eval("hotparamPage.heat.list.map((n) => n.id)", &rows)
	tab.Eval("hotparamPage.heat.view.last", &from)
	if len(rows) == 0 || from != 900 {
		t.Errorf("rows %q, last %d", rows, from)
	}
	clean(t, tab)
}

// The filter finds keys beyond those that an answer without it has.
func filterReachesAll(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	p := wideAndLong(1200, 60, start, 1)
	for _, r := range p.rows[1:] {
		r.low[0] += 1000
	}
	openPast(t, tab, p, fmt.Sprintf("from=%d&to=%d", start, start+60))
	shown := "hotparamPage.heat.rows.some((row) => row.key === 'q=value-0000')"
	tab.Wait("hotparamPage.heat.rows.length === 1001 && !" + shown)
	tab.Eval("document.getElementById('heat-filter').focus()", nil)
	tab.Type("value-0000")
	tab.Wait(shown + " && hotparamPage.heat.list.some((n) => n.label === 'value-0000')")
	tab.Press("Escape")
	tab.Wait("hotparamPage.heat.rows.length === 1001 && document.getElementById('heat-filter').value === ''")
	clean(t, tab)
}

func hostileHeat(t *testing.T, tab *real.Tab) {
	start := time.Now().Add(-time.Hour).Unix()
	p := &pastFixture{from: start, step: 1}
	for i, key := range hostileKeys {
		r := p.row(60, hostileKeys[0], []string{"GET /search", hostileKeys[0], ""}[i%3], key, "requests")
		for s := range r.low {
			r.low[s], r.high[s] = 5, -1
		}
		p.marks = append(p.marks, pastMark{At: start + int64(i), Kind: []string{"hot", key, "control"}[i%3], Key: key, Words: key})
	}
	openPast(t, tab, p, fmt.Sprintf("from=%d&to=%d", start, start+60))
	tab.Eval("document.getElementById('heat-all').click()", nil)
	tab.Eval("document.getElementById('heat-frame').focus()", nil)
	tab.Press("ArrowDown", "ArrowDown", "Enter")
	tab.Wait("!document.getElementById('heat-panel').hidden")
	picture(t, tab, "heat-hostile")
	tab.Eval("document.getElementById('heat-table-button').click()", nil)
	var text string
	tab.Eval("document.body.innerText", &text)
	if strings.ContainsAny(text, "\x00\x1b\x7f\u202e\u2066\u200b\ufeff") {
		t.Errorf("the page shows %q", text)
	}
	tab.Wait(`import("/assets/heataxis.js").then(({kindOf}) => ["__proto__", "constructor", "fault"].map((kind) => kindOf({kind}).sign).join("") === "??!")`)
	var pwned bool
	if tab.Eval("'pwned' in window || document.querySelectorAll('img, iframe').length > 0", &pwned); pwned {
		t.Error("a value became HTML")
	}
	clean(t, tab)
}

func heatOnSmallScreens(t *testing.T, tab *real.Tab) {
	tab.Resize(390, 740)
	start := time.Now().Add(-time.Hour).Unix()
	openPast(t, tab, smallPast(start), fmt.Sprintf("colour=requests&from=%d&to=%d", start, start+60))
	var over int
	if tab.Eval("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth", &over); over > 0 {
		t.Errorf("the page is %d px wider than the screen", over)
	}
	tab.Wait("document.getElementById('heat-frame').clientHeight > 250")
	picture(t, tab, "heat-small")
	// A tap lists the keys of a cell; two fingers zoom.
	tab.Eval(`(() => {
		const frame = document.getElementById('heat-frame'), box = frame.getBoundingClientRect();
		const at = (type, id, x, y) => frame.dispatchEvent(new PointerEvent(type, {clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: id, pointerType: 'touch', bubbles: true}));
		frame.setPointerCapture = () => {};
		at('pointerdown', 1, 200, 100); at('pointerdown', 2, 240, 100);
		at('pointermove', 1, 160, 100); at('pointermove', 2, 280, 100);
		at('pointerup', 1, 160, 100); at('pointerup', 2, 280, 100);
		at('pointerdown', 3, 300, 80); at('pointerup', 3, 300, 80);
	})()`, nil)
	tab.Wait("(() => { const [a, b] = hotparamPage.heat.view.times(0); return b - a < 30; })()")
	tab.Wait("!document.getElementById('heat-panel').hidden")
	if tab.Eval("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth", &over); over > 0 {
		t.Errorf("with the panel the page is %d px wider than the screen", over)
	}
	picture(t, tab, "heat-small-panel")
	clean(t, tab)
}
