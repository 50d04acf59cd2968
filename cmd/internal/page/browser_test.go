//go:build real

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// picture saves a screenshot if HOTPARAM_PICTURES names a directory.
func picture(t *testing.T, tab *real.Tab, name string) {
	t.Helper()
	if dir := os.Getenv("HOTPARAM_PICTURES"); dir != "" {
		time.Sleep(400 * time.Millisecond) // for a frame or two
		tab.Screenshot(filepath.Join(dir, name+".png"))
	}
}

// clean fails the test if the browser reported an exception, an error on the console or a
// violation of the content security policy.
func clean(t *testing.T, tab *real.Tab) {
	t.Helper()
	for _, problem := range tab.Problems() {
		t.Errorf("the browser says: %s", problem)
	}
}

const rowsInSight = "document.querySelectorAll('.grid .row').length"

// All tests use one browser, as each costs a second of processor time.
func TestPageInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("a browser: left out by -short")
	}
	t.Parallel()
	browser := real.StartChromium(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *real.Tab)
	}{
		{"an empty page says what to do", emptyPage},
		{"hostile values stay text", hostileValues},
		{"the keyboard is enough", keyboard},
		{"how keys are held, and why", heldKeys},
		{"small screens", smallScreens},
		{"filter and sort", filterAndSort},
		{"what is wrong is said", whatIsWrong},
		{"a connection that breaks comes back", reconnect},
		{"a thousand keys", thousandKeys},
		{"log in", loginForms},
		{"without barriers", withoutBarriers},
		{"people act", peopleAct},
		{"other sites do not act", otherSites},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, browser.Tab(t, 1360, 820)) })
	}
}

func emptyPage(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.show(&live.Snapshot{Published: true})
	tab.Open(f.server.URL)
	tab.Wait("document.getElementById('hot-empty').innerText.includes('hotparam emit')")
	picture(t, tab, "empty")
	view.show(&live.Snapshot{Published: true, Summary: quietSummary()})
	tab.Wait("document.getElementById('quiet').innerText.includes('62%')")
	tab.Wait("document.getElementById('quiet').innerText.includes('GET /search?q=<b>tv')")
	tab.Wait("document.getElementById('quiet').innerText.includes('940')")
	picture(t, tab, "quiet")
	for key, want := range map[string]string{"2": "Nothing is suspect", "3": "hotparam block", "4": "hotparam doctor", "5": "search-terms", "6": "hotparam watch"} {
		tab.Press(key)
		tab.Wait("document.querySelector('main > section:not([hidden])').innerText.includes('" + want + "')")
	}
	clean(t, tab)
}

// quietSummary is what is seen when nothing is hot.
func quietSummary() published.Summary {
	return published.Summary{
		Near:    []published.Hot{{Key: rules.Key{Rule: "search-terms", Text: "GET /search?q=<b>tv"}, Rate: 124, Low: 124, High: 124, Ratio: 0.62, Cause: published.Cause{Rate: rules.Rate{N: 200, Per: time.Second}}}},
		Traffic: []published.Traffic{{Rule: "search-terms", Route: "GET /search", Rate: 3120, Keys: 940}},
	}
}

// hostileKeys are keys with which an attacker might attack the page.
var hostileKeys = []string{
	`GET /search?q=<img src=x onerror="window.pwned=1">`,
	`GET /search?q=</script><script>window.pwned=1</script>`,
	`GET /search?q="><svg/onload=window.pwned=1>`,
	"GET /search?q=\x00\x1b[31m\r\n\tred\x7f",
	"GET /search?q=abc\u202egpj.exe\u2066\u200b\ufeff",
	"GET /search?q=" + strings.Repeat("long", 2000),
	`GET /search?q=__proto__`, `__proto__`, `constructor`, "GET /search?q='$(reboot)'",
	"GET /search?q=\xff\xfe", "GET /search?q={{7*7}}${7*7}", "javascript:window.pwned=1",
}

func hostileValues(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	s := &live.Snapshot{Published: true}
	hostile := `<img src=x onerror="window.pwned=1">`
	for i, text := range hostileKeys {
		h := search("x", 1000-float64(i))
		h.Text, h.Rule, h.Owner = text, hostile+fmt.Sprint(i), hostile
		h.Top.Callers[0].Name = hostile + "\u202e"
		s.Hot = append(s.Hot, live.HotKey{Hot: h})
		s.Suspects = append(s.Suspects, published.Hot{Key: h.Key, Rate: 1})
		s.Controls = append(s.Controls, published.Control{Key: h.Key, Action: published.ControlBlock, Until: time.Now().Add(time.Hour), Why: hostile, By: hostile, Claimed: hostile})
		s.Members = append(s.Members, published.Member{Name: hostile + fmt.Sprint(i), Role: published.RoleInstance, RulesVersion: hostile, Program: hostile, Problem: hostile, Heard: time.Now()})
	}
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " === " + fmt.Sprint(len(hostileKeys)))
	picture(t, tab, "hostile")
	for range hostileKeys {
		tab.Press("j", "Enter")
		tab.Wait("document.querySelector('.detail .origins td')?.textContent")
		var text string
		tab.Eval("document.querySelector('.detail').innerText", &text)
		if strings.ContainsAny(text, "\x00\x1b\x7f\u202e\u2066\u200b\ufeff") {
			t.Errorf("the detail shows %q", text)
		}
	}
	picture(t, tab, "hostile-detail")
	for _, key := range []string{"2", "3", "4"} {
		tab.Press(key)
		tab.Wait("document.querySelectorAll('main > section:not([hidden]) tbody tr').length === " + fmt.Sprint(len(hostileKeys)))
		picture(t, tab, "hostile-"+key)
	}
	var seen struct {
		Pwned          bool
		Images, Wide   int
		Scripts, First string
	}
	tab.Eval(`({pwned: "pwned" in window, images: document.querySelectorAll("img, iframe, object").length, scripts: [...document.scripts].map((s) => s.src && new URL(s.src).pathname).join(),
		first: [...document.querySelectorAll(".grid .key")].map((e) => e.textContent).sort()[0], wide: document.documentElement.scrollWidth - innerWidth})`, &seen)
	if seen.Pwned || seen.Images != 0 || seen.Scripts != "/assets/theme.js,/assets/main.js" || seen.Wide > 0 {
		t.Errorf("%+v", seen)
	}
	clean(t, tab)
}

func heldKeys(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	s := manyKeys(3, 0)
	for i, stage := range []published.HoldStage{published.HoldSuspected, published.HoldTrial, published.HoldKept} {
		h := &s.Hot[i].Hot
		h.Cause, h.Limit, h.Burst = published.Cause{Kind: rules.Cost, Rate: rules.CostRate, Unit: rules.Millis}, rules.Rate{}, 0
		h.Hold = &published.Hold{
			Pool: "orders-db", Permits: 1, Stage: stage, Share: 0.93, Each: 812 * time.Millisecond, Usual: 4 * time.Millisecond,
			Slow: 96 * time.Millisecond, Now: 50 * time.Millisecond,
		}
	}
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " === 3")
	for _, word := range []string{"held", "on trial", "suspected", "cost"} {
		tab.Wait("document.querySelector('.grid').innerText.includes('" + word + "')")
	}
	picture(t, tab, "held")
	tab.Press("ArrowDown", "Enter")
	tab.Wait("document.querySelector('.detail').innerText.includes(\"held to 1 at a time · 93% of orders-db's time · 812 ms a request, others 4.0 ms · others 96 → 50 ms since\")")
	h := *s.Hot[2].Hold // the first by rate
	h.Now = 5 * time.Millisecond
	next := *s
	next.Hot = append(next.Hot[:0:0], s.Hot...)
	next.Hot[2].Hold = &h
	view.show(&next)
	tab.Wait("document.querySelector('.detail').innerText.includes('96 → 5.0 ms since')")
	picture(t, tab, "held-detail")
	clean(t, tab)
}

func keyboard(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	s := manyKeys(200, 0)
	for i := range s.Hot {
		h := &s.Hot[i]
		h.Admitted = admitted.Gauge{
			OnHot: admitted.OnHot{Stored: 320}, Limits: 1, Limit: rules.Rate{N: 50, Per: time.Second},
			Rates: admitted.Rates{Passed: 50, Refused: 12_300, Served: 320},
		}
		h.Outcomes = &published.FleetOutcomes{Outcomes: published.Outcomes{Passed: 13_800, Refused: 61_200}}
	}
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " > 10")
	selected := func() (text string) {
		tab.Eval("document.querySelector('.grid .row[aria-selected=true] .key')?.textContent ?? ''", &text)
		return text
	}
	tab.Press("ArrowDown")
	tab.Press("j", "j")
	if got := selected(); got == "" {
		t.Fatal("j selects nothing")
	}
	tab.Press("End")
	tab.Wait("document.querySelector('.grid .row[aria-selected=true]')?.getAttribute('aria-rowindex') === '201'")
	last := selected()
	tab.Press("Enter")
	tab.Wait("!document.getElementById('detail').hidden")
	var title string
	if tab.Eval("document.querySelector('.detail h2').textContent", &title); title != last {
		t.Errorf("the detail is of %q, selected is %q", title, last)
	}
	tab.Wait("document.querySelector('.detail .chart').getAttribute('aria-label').startsWith('Rate from')")
	tab.Wait("document.querySelector('.detail').innerText.includes('320/s from memory, by all instances')")
	tab.Wait("document.querySelector('.detail').innerText.includes('12,300 of 12,670/s')")
	tab.Wait("document.querySelector('.detail').innerText.includes('61,200 of 75,000 requests were refused')")
	tab.Wait("document.querySelector('.detail .chart .c-refused').getAttribute('d').startsWith('M') && document.querySelector('.detail .chart .c-allowed')")
	// Commands for a terminal act on the Redis that the page reads, and can be copied.
	var commands []string
	tab.Eval("[...document.querySelectorAll('.detail .cmd')].map((e) => e.textContent)", &commands)
	if want := "hotparam block 'search-terms " + title + "' --for 10m --why 'INC-1234' --namespace shop --redis redis://redis.example:6379/0"; len(commands) != 4 || commands[0] != want {
		t.Errorf("commands %q, want %q first", commands, want)
	}
	tab.Eval("document.querySelector('.detail .copy').click()", nil)
	tab.Wait("['Copied', 'Press Ctrl+C'].includes(document.querySelector('.detail .copy').textContent)")
	picture(t, tab, "detail")
	tab.Press("Escape")
	tab.Wait("document.getElementById('detail').hidden")
	tab.Press("/")
	tab.Type("0042")
	tab.Wait("document.getElementById('shown').textContent.startsWith('1 of 200')")
	tab.Press("Enter")
	if got := selected(); !strings.HasSuffix(got, "value-0042") {
		t.Errorf("Enter in the filter selects %q", got)
	}
	tab.Press("Escape")
	tab.Wait("document.getElementById('filter').value === ''")
	tab.Press("Escape")
	tab.Eval("document.activeElement.blur()", nil)
	tab.Press("4")
	tab.Wait("document.getElementById('tab-instances').getAttribute('aria-selected') === 'true'")
	tab.Press("?")
	tab.Wait("document.getElementById('help').open")
	tab.Press("Escape")
	tab.Wait("!document.getElementById('help').open")
	for _, want := range []string{"light", "dark", "auto"} {
		tab.Press("t")
		tab.Wait("document.documentElement.dataset.theme === '" + want + "'")
	}
	// Screen readers need names of controls, roles, and one tab stop a group.
	var missing []string
	tab.Eval(`[...document.querySelectorAll("button, input, select, [role=grid], [role=tabpanel], aside")].filter((e) => !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length || e.getAttribute("aria-labelledby"))).map((e) => e.outerHTML.slice(0, 80))`, &missing)
	if len(missing) > 0 {
		t.Errorf("without a name: %q", missing)
	}
	clean(t, tab)
}

func smallScreens(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	s := manyKeys(50, 0)
	s.Hot[49].Text = "GET /search?q=" + strings.Repeat("w", 400)
	s.Members = troubledMembers()
	view.show(s)
	tab.Resize(360, 740)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " > 3")
	narrow := func(what string) {
		t.Helper()
		var over int
		if tab.Eval("Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - innerWidth", &over); over > 0 {
			t.Errorf("%s: the page is %d px wider than the screen", what, over)
		}
	}
	narrow("the list")
	picture(t, tab, "small")
	tab.Press("j", "Enter")
	tab.Wait("!document.getElementById('detail').hidden")
	narrow("a key")
	picture(t, tab, "small-detail")
	tab.Press("Escape")
	for _, key := range []string{"2", "3", "4", "5", "6"} {
		tab.Press(key)
		narrow("view " + key)
		picture(t, tab, "small-"+key)
	}
	clean(t, tab)
}

func filterAndSort(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	s := manyKeys(30, 0)
	s.Hot[3].Rule, s.Hot[3].Mode, s.Hot[3].Limit = "tenants", rules.ModeWatch, rules.Rate{}
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " > 10")
	sorted := func(numbers string) string {
		return "(() => { const rows = [...document.querySelectorAll('.grid .row')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('" + numbers + "').textContent); return rows.length > 5 && rows.every((r, i) => i === 0 || parseFloat(rows[i-1]) >= parseFloat(r)); })()"
	}
	tab.Wait(sorted(".rate"))
	tab.Eval("document.querySelector('[data-sort=count]').click()", nil)
	tab.Wait(sorted(".c-count"))
	tab.Wait("document.querySelector('[aria-sort=descending] button').dataset.sort === 'count'")
	// Rows move together with their numbers.
	s = manyKeys(30, 0)
	for i := range s.Hot {
		s.Hot[i].Low, s.Hot[i].Rate = int64(1000+7*i), float64(1000+7*i)
	}
	s.Hot[3].Rule, s.Hot[3].Mode, s.Hot[3].Limit = "tenants", rules.ModeWatch, rules.Rate{}
	view.show(s)
	tab.Wait("document.querySelector('.grid .row[aria-rowindex=\"2\"] .key').textContent.endsWith('value-0029')")
	tab.Wait(sorted(".c-count"))
	tab.Eval("const pick = document.getElementById('filter-rule'); pick.value = 'tenants'; pick.dispatchEvent(new Event('change'))", nil)
	tab.Wait(rowsInSight + " === 1")
	tab.Eval("document.getElementById('filter').value = 'no such'; document.getElementById('filter').dispatchEvent(new Event('input'))", nil)
	tab.Wait("document.getElementById('hot-empty').innerText.includes('No key passes the filter')")
	tab.Eval("document.querySelector('#hot-empty button').click()", nil)
	tab.Wait(rowsInSight + " > 10")
	clean(t, tab)
}

// troubledMembers returns members with each kind of trouble.
func troubledMembers() []published.Member {
	now := time.Now()
	one := func(name string, change func(*published.Member)) published.Member {
		m := published.Member{Name: name, Role: published.RoleInstance, RulesVersion: testRules().Version, Program: "v1.2.3", Started: now.Add(-26 * time.Hour), Heard: now, OffsetKnown: true, Offset: 2 * time.Millisecond}
		change(&m)
		return m
	}
	return []published.Member{
		one("agg-1", func(m *published.Member) {
			m.Role, m.MemoryUsed, m.MemoryMax, m.Floor = published.RoleAggregator, 41<<20, 64<<20, 12
		}),
		one("api-1", func(*published.Member) {}),
		one("api-2", func(m *published.Member) { m.RulesVersion = "0d11aa52c0ffee00" }),
		one("api-3", func(m *published.Member) { m.Offset = -4200 * time.Millisecond }),
		one("api-4", func(m *published.Member) { m.Lost, m.Dropped = 1811, 12 }),
		one("api-5", func(m *published.Member) { m.Problem = "hotparam.yaml:7: unknown field \"limits\" in a rule" }),
		one("api-6", func(m *published.Member) { m.OffsetKnown = false }),
	}
}

func whatIsWrong(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.events = manyEvents(30)
	s := manyKeys(12, 0)
	s.Members = troubledMembers()
	s.Instances = []published.Instance{{Name: "api-1", Heard: time.Now()}, {Name: "legacy-7", Heard: time.Now()}}
	s.Controls = []published.Control{{Key: s.Hot[2].Key, Action: published.ControlBlock, Since: time.Now(), Until: time.Now().Add(10 * time.Minute), Why: "scraper", By: "hotparam-operator", Claimed: "ann@laptop"}}
	view.show(s)
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " > 5")
	for _, words := range []string{"Rules differ: api-2", "Clocks are off: api-3", "Counts are lost: api-4", "unknown field"} {
		tab.Wait("document.getElementById('banners').innerText.includes('" + words + "')")
	}
	tab.Wait("document.getElementById('facts').innerText.includes('41 MiB of 64 MiB')")
	tab.Wait("[...document.querySelectorAll('.grid .tag')].some((e) => e.textContent === 'block')")
	picture(t, tab, "wrong")
	tab.Press("4")
	tab.Wait("document.querySelectorAll('td.differs, td.broken').length >= 4 && document.querySelectorAll('#view-instances tbody tr').length === 8")
	tab.Wait("document.getElementById('view-instances').innerText.includes('Check NTP')")
	picture(t, tab, "instances")
	tab.Press("3")
	tab.Wait("document.getElementById('view-controls').innerText.includes('claims to be ann@laptop')")
	picture(t, tab, "controls")
	tab.Press("6")
	tab.Wait("document.querySelectorAll('#view-events tbody tr').length === 2 && document.getElementById('view-events').innerText.includes('hot ×30')")
	tab.Eval("document.querySelector('#view-events summary').click()", nil)
	tab.Wait("document.getElementById('view-events').innerText.includes('value-0029')")
	picture(t, tab, "events")
	away := manyKeys(12, 0)
	away.Err = fmt.Errorf("dial tcp 10.0.0.5:6379: connect: connection refused")
	away.Members = s.Members[:2]
	view.show(away)
	tab.Wait("document.getElementById('banners').innerText.includes('Redis is unavailable')")
	tab.Wait("document.getElementById('facts').innerText.includes('away')")
	tab.Press("1")
	picture(t, tab, "redis-away")
	clean(t, tab)
}

func reconnect(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.show(manyKeys(5, 0))
	tab.Open(f.server.URL)
	tab.Wait("document.getElementById('link').dataset.state === 'live'")
	f.server.CloseClientConnections()
	tab.Wait("document.getElementById('link').dataset.state !== 'live'")
	view.show(manyKeys(7, 1))
	tab.Wait("document.getElementById('link').dataset.state === 'live' && " + rowsInSight + " === 7")
	tab.Problems() // the broken connection is one
}

// With a thousand keys that all change fifty times a second, the page draws only the visible
// ones, and the number of its rows and lines does not grow.
func thousandKeys(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, "")
	view.show(manyKeys(1000, 0))
	tab.Open(f.server.URL)
	tab.Wait(rowsInSight + " > 10")
	tab.Eval(`window.frames_ = []; (() => { let last = performance.now(); const step = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(step); }; requestAnimationFrame(step); })()`, nil)
	var before, after struct{ UsedSize float64 }
	heap := func(into *struct{ UsedSize float64 }) {
		tab.CollectGarbage()
		tab.Eval("performance.memory.usedJSHeapSize", &into.UsedSize)
	}
	heap(&before)
	const seconds, updates = 4, 50
	tick := time.NewTicker(time.Second / updates)
	defer tick.Stop()
	for step := range seconds * updates {
		<-tick.C
		view.show(manyKeys(1000, step+1))
		if step%updates == 25 {
			tab.Eval("document.getElementById('grid').scrollBy(0, 4000)", nil)
		}
	}
	var seen struct {
		Frames, Drawn, Rows, Points int
		P50, P95, Worst             float64
		Shown                       int
	}
	tab.Eval(`(() => { const f = frames_.slice(5).sort((a, b) => a - b); const { store, table } = hotparamPage; return { frames: f.length, p50: f[f.length >> 1], p95: f[Math.floor(f.length * 0.95)], worst: f[f.length - 1],
		drawn: table.drawn, rows: document.querySelectorAll(".grid .row").length, points: Math.max(...[...store.hot.values()].map((k) => k.line.length)), shown: store.hot.size }; })()`, &seen)
	heap(&after)
	t.Logf("1,000 keys, %d updates a second for %d s: %d frames, median %.0f ms, 95%% within %.0f ms, longest %.0f ms; %d rows in the document; heap %.1f MB, then %.1f MB",
		updates, seconds, seen.Frames, seen.P50, seen.P95, seen.Worst, seen.Rows, before.UsedSize/1e6, after.UsedSize/1e6)
	if seen.Shown != 1000 || seen.Rows > 60 || seen.Points > 300 || seen.Drawn < 10 || seen.Frames < 20 {
		t.Errorf("%+v", seen)
	}
	if after.UsedSize > 64e6 {
		t.Errorf("the heap has %.1f MB", after.UsedSize/1e6)
	}
	if s := f.page.Stats(); s.Cut != 0 {
		t.Errorf("the page was cut off as too slow: %+v", s)
	}
	picture(t, tab, "thousand")
	clean(t, tab)
}

func loginForms(t *testing.T, tab *real.Tab) {
	view := newFakeView(t)
	f := serveView(t, view, testToken)
	view.show(manyKeys(5, 0))
	tab.Open(f.server.URL)
	tab.Wait("location.pathname === '/login' && document.activeElement.id === 'token'")
	picture(t, tab, "login")
	tab.Type("wrong")
	tab.Press("Enter")
	tab.Wait("document.querySelector('[role=alert]')?.textContent === 'The token is wrong.'")
	tab.Prefer("prefers-color-scheme", "dark")
	picture(t, tab, "login-wrong")
	tab.Wait("document.activeElement.id === 'token'")
	tab.Type(testToken)
	tab.Press("Enter")
	tab.Wait(rowsInSight + " === 5")
	var visible string
	if tab.Eval("document.cookie + location.href", &visible); strings.Contains(visible, "hotparam_session") || strings.Contains(visible, testToken) {
		t.Errorf("a script reads %q", visible)
	}
	tab.Eval("document.querySelector('#logout button').click()", nil)
	tab.Wait("location.pathname === '/login'")
	for _, problem := range tab.Problems() { // that the first try was refused is one
		if !strings.Contains(problem, "401") {
			t.Errorf("the browser says: %s", problem)
		}
	}
}
