package screen

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/cmd/internal/demo"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// TestLive runs the view without a terminal: q is pressed at once.
func TestLive(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	if err := Live(ctx, Config{Transport: demo.StatsD, In: strings.NewReader("q"), Out: &out, Err: &errs}); err != nil || ctx.Err() != nil || errs.Len() > 0 {
		t.Fatalf("%v, %v, stderr %q", err, ctx.Err(), errs.String())
	}
	if !strings.Contains(out.String(), "requests in 0 s") {
		t.Errorf("no summary:\n%s", out.String())
	}
}

// began is the time of the tests' snapshots.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func demoKey(cik int, rate float64, since time.Duration) demo.CountedKey {
	return demo.CountedKey{
		Hot: published.Hot{
			Key:   rules.Key{Rule: "company", Text: fmt.Sprintf("%s?cik=%d", demo.Route, cik)},
			Rate:  rate,
			Since: began.Add(since),
			Limit: demo.Rules().Rules[0].Limit.Rate,
		},
		Passed: 1000, Refused: 2,
	}
}

func TestLinePrinter(t *testing.T) {
	var out bytes.Buffer
	l := newLinePrinter(&out, began, func(text string) string { return "curl " + text })
	one, two := demoKey(1, 11, time.Second), demoKey(2, 30, 2*time.Second)
	l.show(demo.Moment{At: began.Add(time.Second), Allowed: 300})
	l.show(demo.Moment{At: began.Add(1200 * time.Millisecond), Allowed: 350, Hot: []demo.CountedKey{one}})
	l.show(demo.Moment{At: began.Add(2 * time.Second), Allowed: 600, Hot: []demo.CountedKey{two, one}})
	l.show(demo.Moment{At: began.Add(5 * time.Second), Allowed: 1500, Limited: 1300, Keys: 7, Hot: []demo.CountedKey{two, one}})
	l.show(demo.Moment{At: began.Add(12 * time.Second), Allowed: 1501, Limited: 1300, Keys: 9, Hot: []demo.CountedKey{two}})
	const want = `   1.2s  hot   GET /Archives/edgar/data?cik=1, 11/s
         try   curl GET /Archives/edgar/data?cik=1
   2.0s  hot   GET /Archives/edgar/data?cik=2, 30/s
   5.0s        733 requests/s, 7 keys seen, 2 hot, 1,300 refused
  12.0s  cool  GET /Archives/edgar/data?cik=1, was hot for 11 s, 2 refused
  12.0s        0 requests/s, 9 keys seen, 1 hot, 1,300 refused
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestWriteSummary(t *testing.T) {
	p50, p99 := 58.3, 100.7
	r := demo.Result{
		Requests: 6792, Allowed: 6785, Limited: 7, Failed: 1,
		Hot:     []demo.HotResult{{Key: "GET /a?q=1", PeakRate: 23, Limited: 1234}, {Key: "GET /a?q=2", PeakRate: 10}},
		Enforce: demo.Percentiles{P50: &p50, P99: &p99},
		Dropped: map[string]int64{"late": 2, "too_long": 0, "lost_packets": 1000},
	}
	var out bytes.Buffer
	writeSummary(&out, r, 20*time.Second)
	const want = `
  PEAK/S   REFUSED  KEY
      23     1,234  GET /a?q=1
      10         0  GET /a?q=2

6,792 requests in 20 s: 6,785 passed, 7 refused, 1 failed; 2 keys were hot at some time
limited by all 3 instances after 58 ms (p50), 101 ms (p99)
dropped: late 2, lost_packets 1,000
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	for range summaryKeys {
		r.Hot = append(r.Hot, demo.HotResult{Key: "GET /a?q=3", PeakRate: 1})
	}
	out.Reset()
	if writeSummary(&out, r, time.Second); !strings.Contains(out.String(), "  2 more\n") {
		t.Errorf("got:\n%s", out.String())
	}
}

// testView returns a view of n hot keys, and one that has just cooled.
func testView(n int) screenText {
	v := screenText{
		transport: "Kafka (embedded) at 127.0.0.1:9092, topic hotparam.counters, 4 partitions",
		redis:     []string{"redis-cli -p 6379 ZREVRANGE 'hotparam:{demo}:hot' 0 -1 WITHSCORES", "redis-cli -p 6379 ZREVRANGE"},
		curl: func(text string) []string {
			return []string{"curl -i 'http://127.0.0.1:8080" + text + "'", "curl " + text}
		},
		warning: func() string { return "" },
	}
	gone := demoKey(99, 12, 0)
	v.update(demo.Moment{At: began.Add(time.Second), Hot: []demo.CountedKey{gone}})
	s := demo.Moment{At: began.Add(2 * time.Second), Allowed: 700, Limited: 1200, Keys: 12345, LogTime: began}
	p := 99.9
	s.Enforce = demo.Percentiles{P50: &p, P99: &p}
	for i := range n {
		s.Hot = append(s.Hot, demoKey(1_000_000+i, float64(50-i), 0))
	}
	v.update(s)
	return v
}

// At any size, the view has no more and no wider lines than the terminal, and the last one shows
// how to leave.
func TestViewFits(t *testing.T) {
	for _, keys := range []int{0, 1, 25} {
		v := testView(keys)
		v.warning = func() string { return "level=WARN msg=" + strings.Repeat("long ", 50) }
		for width := 0; width < 150; width += 1 + width/15 {
			for _, height := range []int{0, 1, 2, 3, 5, 8, 15, 19, 24, 60} {
				text := v.render(width, height)
				if width == 0 || height == 0 {
					continue
				}
				lines := strings.Split(text, "\n")
				if len(lines) > height || lipgloss.Width(text) > width {
					t.Fatalf("%d keys at %d×%d: %d lines, %d wide:\n%s", keys, width, height, len(lines), lipgloss.Width(text), text)
				}
				if height > 5 && width > 8 && !strings.Contains(lines[len(lines)-1], "q quit") {
					t.Fatalf("%d keys at %d×%d: no key help:\n%s", keys, width, height, text)
				}
			}
		}
	}
}

func TestViewShows(t *testing.T) {
	tests := []struct {
		width, height int
		want, not     []string
	}{
		{120, 30, []string{"3 instances", "12,345 keys seen", "5 hot", "1,200 refused", "100 ms p99", "log of 2026-01-02", "hot at 10/s", "Kafka (embedded)", "LIMIT", "PASSED", "REFUSED", "HOT FOR", "GET /Archives/edgar/data?cik=1000000 ", "━", "▶", "cooled", "WITHSCORES", "curl -i", "q quit"}, nil},
		{80, 24, []string{"5 hot", "PASSED", "REFUSED", "HOT FOR", "GET …/data?cik=1000000 ", "━", "WITHSCORES", "curl"}, []string{"LIMIT"}},
		{60, 15, []string{"5 hot", "REFUSED", "GET …?cik=1000000 ", "━", "redis-cli", "curl"}, []string{"PASSED", "WITHSCORES"}},
		{30, 6, []string{"RATE/S", "cik=1000000", "q quit"}, []string{"redis-cli", "━"}},
	}
	for _, test := range tests {
		v := testView(5)
		text := v.render(test.width, test.height)
		for _, want := range test.want {
			if !strings.Contains(text, want) {
				t.Errorf("%d×%d: %q is not in\n%s", test.width, test.height, want, text)
			}
		}
		for _, not := range test.not {
			if strings.Contains(text, not) {
				t.Errorf("%d×%d: %q is in\n%s", test.width, test.height, not, text)
			}
		}
	}
}

// A key that cooled is shown for a while, unless it is hot again.
func TestViewCooled(t *testing.T) {
	v := testView(0)
	at := func(after time.Duration, hot ...demo.CountedKey) int {
		v.update(demo.Moment{At: began.Add(after), Hot: hot})
		return len(v.cooled)
	}
	if len(v.cooled) != 1 {
		t.Fatal("not shown")
	}
	if n := at(3*time.Second, demoKey(99, 20, 3*time.Second)); n != 0 {
		t.Error("shown as cooled though it is hot")
	}
	if n := at(4 * time.Second); n != 1 {
		t.Error("not shown")
	}
	if n := at(4*time.Second + showCooled); n != 0 {
		t.Error("shown for too long")
	}
}

// A command does not change while the user copies it.
func TestViewTries(t *testing.T) {
	v := testView(3)
	first := v.tried.Text
	v.update(demo.Moment{At: began, Hot: []demo.CountedKey{demoKey(5, 90, 0), demoKey(1_000_000, 1, 0)}})
	if v.tried.Text != first {
		t.Errorf("%s, was %s", v.tried.Text, first)
	}
	v.update(demo.Moment{At: began, Hot: []demo.CountedKey{demoKey(5, 90, 0)}})
	if want := demoKey(5, 0, 0).Text; v.tried.Text != want {
		t.Errorf("%s, want %s", v.tried.Text, want)
	}
}

func TestModelKeys(t *testing.T) {
	quits := func(cmd tea.Cmd) bool {
		if cmd == nil {
			return false
		}
		_, ok := cmd().(tea.QuitMsg)
		return ok
	}
	press := func(m tea.Model, key tea.Key) (model, tea.Cmd) {
		next, cmd := m.Update(tea.KeyPressMsg(key))
		return next.(model), cmd
	}
	q, ctrlC := tea.Key{Code: 'q', Text: "q"}, tea.Key{Code: 'c', Mod: tea.ModCtrl}
	for _, first := range []tea.Key{q, ctrlC} {
		stops := 0
		m, cmd := press(model{view: testView(1), stop: func() { stops++ }}, tea.Key{Code: 'x', Text: "x"})
		if stops != 0 || quits(cmd) {
			t.Fatal("any key ends it")
		}
		m, cmd = press(m, first)
		if stops != 1 || quits(cmd) || m.impatient || !strings.Contains(m.view.render(80, 24), "ending") {
			t.Fatalf("%v: asked %d times to stop, quits: %v", first, stops, quits(cmd))
		}
		if again, cmd := press(m, q); quits(cmd) || again.impatient {
			t.Errorf("%v, then q: ends at once", first)
		}
		if again, cmd := press(m, ctrlC); !quits(cmd) || !again.impatient {
			t.Errorf("%v, then Ctrl-C: does not end at once", first)
		}
		if last, cmd := m.Update(endedMsg{}); !quits(cmd) || last.(model).impatient {
			t.Errorf("%v: does not quit when the demo has ended", first)
		}
	}
}

// crowds counts what the key f starts and stops.
type crowds struct{ started, stopped int }

func (c *crowds) StartCrowd(time.Duration) { c.started++ }
func (c *crowds) StopCrowd()               { c.stopped++ }

func TestModelCrowd(t *testing.T) {
	c := &crowds{}
	f := tea.KeyPressMsg(tea.Key{Code: 'f', Text: "f"})
	m := model{view: testView(1), stop: func() {}, crowd: c}
	press := func(wantStarted, wantStopped int) {
		t.Helper()
		next, _ := m.Update(f)
		if m = next.(model); c.started != wantStarted || c.stopped != wantStopped {
			t.Errorf("started %d times, stopped %d times", c.started, c.stopped)
		}
	}
	press(1, 0)
	m.view.now.CrowdLeft = 9 * time.Second
	if text := m.view.render(102, 30); !strings.Contains(text, "f end the flash crowd (9 s left)") {
		t.Error(text)
	}
	press(1, 1)
	m.ending = true
	press(1, 1)
}

// effects are those of a crowd.
func effects() (e [demo.Variants]demo.Effect) {
	slow, fast := 306.0, 9.0
	e[demo.WithoutLimits] = demo.Effect{Latency: demo.Latency{Percentiles: demo.Percentiles{P50: &slow, P99: &slow}, Requests: 9, Failed: 0.14}, Calls: 855.4, Crowd: demo.Latency{Requests: 9, Failed: 0.42}}
	e[demo.WithLimits] = demo.Effect{Latency: demo.Latency{Percentiles: demo.Percentiles{P50: &fast, P99: &fast}, Requests: 9}, Calls: 370, Crowd: demo.Latency{Requests: 9, Refused: 0.97}}
	e[demo.WithOnHot] = demo.Effect{Latency: e[demo.WithLimits].Latency, Calls: 361, Crowd: demo.Latency{Requests: 9}}
	return e
}

// effectLines are the lines of a table of effects().
const effectLines = `                          without limits     with limits     with on_hot
calls at the database              855/s           370/s           361/s
the crowd: served                    58%              3%            100%
           refused                    0%             97%              0%
the others: p99                   306 ms            9 ms            9 ms
            not answered             14%              0%              0%`

func TestViewEffects(t *testing.T) {
	v := testView(3)
	v.update(demo.Moment{At: began, Effects: effects()})
	text := withoutColors(v.render(80, 24))
	for line := range strings.Lines(effectLines + "\nf flash crowd: 500/s\nbelow the threshold, 10/s") {
		if want := strings.TrimSpace(line); !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if v = testView(3); !strings.Contains(v.render(102, 30), "with on_hot") || strings.Contains(v.render(102, 30), "NaN") { // nothing is known yet
		t.Error(v.render(102, 30))
	}
}

func TestUnattendedCrowd(t *testing.T) {
	for length, want := range map[time.Duration][2]time.Duration{
		0: {}, 9 * time.Second: {}, 20 * time.Second: {8 * time.Second, 8 * time.Second}, time.Hour: {30 * time.Second, 15 * time.Second},
	} {
		if after, lasts := unattendedCrowd(length); after != want[0] || lasts != want[1] {
			t.Errorf("%s: after %s for %s", length, after, lasts)
		}
	}
}

func TestCrowdLines(t *testing.T) {
	var out bytes.Buffer
	l := newLinePrinter(&out, began, nil)
	l.show(demo.Moment{At: began.Add(time.Second)})
	l.show(demo.Moment{At: began.Add(4 * time.Second), CrowdLeft: 3 * time.Second})
	l.show(demo.Moment{At: began.Add(5 * time.Second), CrowdLeft: 2 * time.Second, Effects: effects()})
	l.show(demo.Moment{At: began.Add(7 * time.Second)})
	const want = `   4.0s  crowd 500/s more ask for GET /Archives/edgar/data?cik=320193
   5.0s        0 requests/s, 0 keys seen, 0 hot, 0 refused
         the others' p99: 306 ms without limits, 9 ms with limits, 9 ms with on_hot
         the crowd is served: 58% without limits, 3% with limits, 100% with on_hot
   7.0s  crowd over
`
	if out.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", out.String(), want)
	}
	out.Reset()
	e := effects()
	writeSummary(&out, demo.Result{Crowd: &demo.CrowdResult{Key: demo.CrowdKey, Rate: 500, NoLimits: e[demo.WithoutLimits], Limits: e[demo.WithLimits], OnHot: e[demo.WithOnHot]}}, time.Second)
	if want := "500 times a second:\n  " + strings.ReplaceAll(effectLines, "\n", "\n  ") + "\n"; !strings.Contains(out.String(), want) {
		t.Errorf("%s\nis not in\n%s", want, out.String())
	}
}

// withoutColors returns the text of terminal output.
func withoutColors(s string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		switch {
		case r == '\x1b':
			inside = true
		case inside:
			inside = r != 'm'
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestBar(t *testing.T) {
	for rate, want := range map[float64]string{
		0:   "··········│····│··············",
		5:   "━━━━━·····│····│··············",
		5.5: "━━━━━╸····│····│··············",
		10:  "━━━━━━━━━━│····│··············",
		16:  "━━━━━━━━━━━━━━━━··············",
		30:  "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━",
		99:  "━━━━━━━━━━━━━━━━━━━━━━━━━━━━━▶",
	} {
		if got := withoutColors(bar(rate, 30)); got != want {
			t.Errorf("%v:\n%s, want\n%s", rate, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		rate, width := rapid.Float64Range(0, 1e6).Draw(t, "rate"), rapid.IntRange(barLeast, barMost).Draw(t, "width")
		if w := lipgloss.Width(bar(rate, width)); w != width {
			t.Fatalf("%d wide", w)
		}
	})
}
