//go:build real

package page

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/hotparam/hotparam/checks/real"
)

const dayMinutes = 24 * 60

// dayOfIncidents takes the pictures of the documents. It also checks that the page names the five
// incidents and nothing else, and that they have rows of their own in each colour.
func dayOfIncidents(t *testing.T, tab *real.Tab) {
	day := plantedDay(t)
	tab.Resize(1280, 700)
	openPast(t, tab, day, fmt.Sprintf("from=%d&to=%d", day.from, day.from+86400))
	// ratio compares the amounts of a row in an incident with those of a time before.
	ratio := func(label string, in, before int) float64 {
		t.Helper()
		var times *float64
		tab.Eval(fmt.Sprintf(`(() => {
			const { heat } = hotparamPage, { data } = heat.loader, row = heat.list.find((n) => n.label === %q && !n.open);
			if (!row) return null;
			const at = (minute) => row.amounts(data).low[data.columnOf(%d + minute * 60)];
			return at(%d) / Math.max(1, at(%d));
		})()`, label, day.from, in, before), &times)
		if times == nil {
			t.Errorf("no row %q", label)
			return 0
		}
		return *times
	}
	var found []string
	tab.Eval("[...document.querySelectorAll('#heat-found li button')].map((li) => li.innerText)", &found)
	for i, want := range []string{
		"02:30–04:10 a scan? GET /product: requests",
		"09:10–10:20 a crowd? GET /status: user=15332, from almost none",
		"12:40–14:30 a slow value GET /product: id=107,",
		"16:20–17:05 all values slow GET /product: 27",
		"20:05–21:10 a bot? GET /product: 120 values",
	} {
		if i >= len(found) || !strings.HasPrefix(found[i], fmt.Sprint(i+1, " ", want)) {
			t.Errorf("want %d: %s…, found %q", i+1, want, found)
		}
	}
	if len(found) > 5 {
		t.Errorf("the page says that %q stand out as well", found[5:])
	}
	var gaps []string
	tab.Eval("[...document.querySelectorAll('#heat-found .gap')].map((li) => li.innerText)", &gaps)
	if len(gaps) != 1 || !strings.HasSuffix(gaps[0], "no data no aggregator wrote") {
		t.Errorf("the time without an aggregator is told as %q", gaps)
	}
	for _, theme := range []string{"light", "dark"} {
		tab.Prefer("prefers-color-scheme", theme)
		picture(t, tab, "heat-unusual-"+theme)
	}
	for _, colour := range []struct {
		name string
		want []struct {
			row        string
			in, before int
		}
	}{
		{"requests", []struct {
			row        string
			in, before int
		}{{"15332", at(9, 30), at(8, 30)}, {"all other values", at(3, 0), at(1, 0)}, {"2…", at(20, 30), at(19, 30)}}},
		{"ms", []struct {
			row        string
			in, before int
		}{{"107", at(14, 0), at(12, 0)}, {"3…", at(16, 40), at(15, 40)}}},
	} {
		tab.Eval(fmt.Sprintf("(() => { const pick = document.getElementById('heat-colour'); pick.value = '%s'; pick.dispatchEvent(new Event('change')); })()", colour.name), nil)
		for _, w := range colour.want {
			if r := ratio(w.row, w.in, w.before); r < 3 {
				t.Errorf("%s: row %q has %.1f times as much in its incident as before", colour.name, w.row, r)
			}
		}
	}
	clean(t, tab)
}

// plantedDay returns a day of two real traces with five incidents in it, or skips the test. The
// traces have no durations, so those are drawn.
func plantedDay(t *testing.T) *pastFixture {
	t.Helper()
	dir := os.Getenv("HOTPARAM_TRACES")
	if dir == "" {
		t.Skip("HOTPARAM_TRACES names no folder with traces")
	}
	start := time.Date(2012, 7, 3, 0, 0, 0, 0, time.Local).Unix()
	day := &dayMaker{past: &pastFixture{from: start, step: 60}, rows: map[string]*counted{}, random: rand.New(rand.NewPCG(3, 7))}

	// A day of retweets and replies, with their times.
	minutes := [dayMinutes]int{}
	for _, line := range traceLines(t, filepath.Join(dir, "higgs-2012-07-01.access.log.zst")) {
		_, text, _ := strings.Cut(line, "[03/Jul/2012:")
		_, user, found := strings.Cut(line, "user=")
		if text == "" || !found {
			continue
		}
		var h, m int
		if _, err := fmt.Sscanf(text, "%d:%d", &h, &m); err != nil {
			t.Fatal(err)
		}
		user, _, _ = strings.Cut(user, " ")
		minutes[h*60+m]++
		day.count("statuses", "GET /status", "user="+user, h*60+m, 1, 0)
	}
	// Pages of a shop, which have no times: they come as the others do.
	products := traceLines(t, filepath.Join(dir, "cache2k-web07.keys.zst"))
	all, next := 0, 0.0
	for _, n := range minutes {
		all += n
	}
	for m, n := range minutes {
		for end := next + float64(len(products))*(0.4/dayMinutes+0.6*float64(n)/float64(all)); next < end && int(next) < len(products); next++ {
			day.page(products[int(next)], m, 1)
		}
	}

	// A crowd: one user, from the first minute on and then ever less.
	for m := at(9, 10); m < at(10, 20); m++ {
		n := 1400 * math.Min(1, float64(m-at(9, 9))/4) * math.Exp(-float64(m-at(9, 10))/28)
		day.count("statuses", "GET /status", "user=15332", m, int(n), max(0, int(n)-300))
	}
	// A scan: each product once, one after the other.
	for m, id := at(2, 30), 600000; m < at(4, 10); m++ {
		for range 280 {
			day.page(fmt.Sprint(id), m, 1)
			id++
		}
	}
	// A slow value: as many requests as ever.
	day.slow = func(id string, m int) float64 {
		cost := 1.0
		if id == "107" && m >= at(12, 40) && m < at(14, 30) {
			cost = 90
		}
		// A bad deploy: all pages take longer, until the version before is back.
		if m >= at(16, 20) && m < at(17, 5) {
			cost *= 9
		}
		return cost
	}
	// A bot: many values at once, equally often, from one minute to another.
	for m := at(20, 5); m < at(21, 10); m++ {
		for i := range 120 {
			day.page(fmt.Sprint(2000+i*37), m, 24+day.random.IntN(6))
		}
	}
	day.durations()
	day.past.keepTop(40)
	p := day.past
	when := func(h, m int) int64 { return start + int64(at(h, m))*60 }
	p.gaps = [][2]int64{{when(5, 10), when(5, 24)}}
	for _, r := range p.rows {
		for m := at(5, 10); m < at(5, 24); m++ {
			r.low[m], r.high[m], r.refused[m] = 0, 0, 0
		}
	}
	p.marks = []pastMark{
		{At: when(5, 24), Kind: "fault", Words: "no aggregator wrote for 14m"},
		{At: when(9, 12), Kind: "hot", Rule: "statuses", Key: "GET /status?user=15332", Words: "312 in 1m, hot at 300/1m"},
		{At: when(10, 1), Kind: "cool", Rule: "statuses", Key: "GET /status?user=15332", Words: "hot for 49m"},
		{At: when(11, 30), Kind: "rules", Words: "rules version 3f2a91c0"},
		{At: when(16, 20), Kind: "deploy", Words: "v2.8.0"},
		{At: when(17, 5), Kind: "deploy", Words: "v2.7.3"},
	}
	for i := range 12 {
		p.marks = append(p.marks, pastMark{At: when(20, 6) + int64(5*i), Kind: "hot", Rule: "products", Key: fmt.Sprintf("GET /product?id=%d", 2000+i*37), Words: "27 in 1m, hot at 25/1m"})
	}
	return p
}

func at(h, m int) int { return h*60 + m }

// dayMaker counts requests by minute.
type dayMaker struct {
	past   *pastFixture
	rows   map[string]*counted
	pages  [dayMinutes]map[string]int
	slow   func(id string, minute int) float64 // how many times longer a page takes
	random *rand.Rand
}

func (d *dayMaker) add(rule, route, key, unit string, minute int, n, refused int64) {
	id := rule + " " + key
	r := d.rows[id]
	if r == nil {
		r = d.past.row(dayMinutes, rule, route, key, unit)
		d.rows[id] = r
	}
	r.low[minute] += n
	r.high[minute] += n
	r.refused[minute] += refused
}

func (d *dayMaker) count(rule, route, key string, minute, n, refused int) {
	d.add(rule, route, key, "requests", minute, int64(n), int64(refused))
}

func (d *dayMaker) page(id string, minute, n int) {
	d.count("products", "GET /product", "id="+id, minute, n, 0)
	if d.pages[minute] == nil {
		d.pages[minute] = map[string]int{}
	}
	d.pages[minute][id] += n
}

// durations counts the time of all pages, some 30 ms each.
func (d *dayMaker) durations() {
	for m, pages := range d.pages {
		for id, n := range pages {
			ms := float64(n) * 30 * math.Exp(0.3*d.random.NormFloat64()) * d.slow(id, m)
			d.add("page-time", "GET /product", "id="+id, "ms", m, int64(ms), 0)
		}
	}
}

func traceLines(t *testing.T, path string) (lines []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	unpacked, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()
	for s := bufio.NewScanner(unpacked); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
