package aggregator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	reference "github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// overlapping feeds a detector requests that make several keys each, and their total.
type overlapping struct {
	*combined
	each, noTotals bool
	value          int
}

func newOverlapping(kind rules.ByKind, n int64) *overlapping {
	c := &combined{out: newRecorder(), now: noon}
	rule := hotRule("r", n, time.Second)
	rule.By.Kind = kind
	c.Detector = NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: c.out})
	c.Advance(c.now)
	return &overlapping{combined: c, each: kind == rules.ByEach}
}

func (o *overlapping) requests(n int64, params ...string) {
	if !o.noTotals {
		o.count("*", n)
	}
	if !o.each {
		slices.Sort(params)
		o.countKeys(n, (&reference.Overlap{}).Keys(params)...)
		return
	}
	o.countKeys(n, params...)
}

// countKeys counts the keys of n requests. Keys with the same names as an earlier one are counted
// once more as repeats, as instances do.
func (o *overlapping) countKeys(n int64, keys ...string) {
	seen := make(map[string]bool)
	for _, key := range keys {
		o.count(key, n)
		var names []string
		for param := range strings.SplitSeq(key, "&") {
			name, _, _ := strings.Cut(param, "=")
			names = append(names, name)
		}
		if group := strings.Join(names, "&"); seen[group] {
			o.count("~again&"+group, n)
		} else {
			seen[group] = true
		}
	}
}

// others counts n requests with a parameter and with values of q that each come once.
func (o *overlapping) others(n int64, param string) {
	for ; n > 0; n -= 20 {
		o.value++
		o.requests(min(n, 20), param, fmt.Sprint("q=v", o.value))
	}
}

func (o *overlapping) count(params string, n int64) {
	text := "GET /s?" + params
	o.Count(decode.Count{Hash: rules.Hash([]byte(text)), Text: []byte(text), N: n, When: o.now, Instance: "i"})
}

// run repeats requests for some time, pane by pane.
func (o *overlapping) run(d time.Duration, requests func()) {
	for end := o.now.Add(d); o.now.Before(end); {
		requests()
		o.pass(base.FlushInterval)
	}
}

// listing returns the listed keys, each with its marks.
func (o *overlapping) listing() string {
	var keys []string
	for key, h := range o.out.hot() {
		text := strings.TrimPrefix(key.Text, "GET /s?")
		switch {
		case h.Spared:
			text += " spared"
		case h.Usual:
			text += " usual"
		}
		keys = append(keys, text)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

// cools returns how often a key was taken off the list.
func (o *overlapping) cools(params string) (n int) {
	for _, change := range o.out.changes {
		for _, h := range change.Cool {
			if h.Text == "GET /s?"+params {
				n++
			}
		}
	}
	return n
}

var overlaps = map[string]rules.ByKind{"each": rules.ByEach, "combinations": rules.ByCombinations}

// A parameter on all requests hides no hot key, and is not limited along with one.
func TestAKeyOnAllRequestsHidesNone(t *testing.T) {
	for name, kind := range overlaps {
		t.Run(name, func(t *testing.T) {
			o := newOverlapping(kind, 100)
			o.run(20*time.Second, func() {
				o.others(85, "lang=en")
				o.requests(15, "lang=en", "q=phone")
			})
			if got := o.listing(); got != "lang=en spared, q=phone" {
				t.Errorf("listed: %s", got)
			}
			if n := o.cools("q=phone"); n > 0 {
				t.Errorf("q=phone was taken off the list %d times", n)
			}
			s := o.Stats()
			if s.Usual != 1 || s.Spared != 1 || s.Hot != 2 {
				t.Errorf("figures %+v", s)
			}
			o.run(30*time.Second, func() {
				o.others(100, "lang=en")
			})
			if got := o.listing(); got != "lang=en usual" {
				t.Errorf("when q=phone is over, listed: %s", got)
			}
		})
	}
}

// A client that repeats its parameters sends no more requests by that. A key on all requests stays
// usual, and no other key becomes usual.
func TestRepeatedParametersAreOneRequest(t *testing.T) {
	for name, kind := range overlaps {
		t.Run(name, func(t *testing.T) {
			o := newOverlapping(kind, 100)
			o.run(20*time.Second, func() {
				o.others(85, "lang=en")
				o.requests(15, "lang=en", "q=1", "q=2", "q=3", "q=4", "q=5", "q=6", "q=7")
			})
			if got := o.listing(); !strings.HasPrefix(got, "lang=en spared, q=1") {
				t.Errorf("beside seven values at once, listed: %s", got)
			}
			o.run(30*time.Second, func() {
				o.others(100, "lang=en")
			})
			if got := o.listing(); got != "lang=en usual" {
				t.Errorf("when they are over, listed: %s", got)
			}
		})
	}
}

// A key that is usual by its mean is limited again once it exceeds the mean by a threshold that
// nothing explains, and not before.
func TestWhatIsNotExplainedIsLimited(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 100)
	feed := func(page1, phone, other int64) func() {
		return func() {
			o.others(page1, "page=1")
			o.requests(phone, "page=1", "q=phone")
			o.others(other, "page=2")
		}
	}
	steps := []struct {
		name                string
		page1, phone, other int64 // requests in a tenth of a second
		d                   time.Duration
		want                string
	}{
		{"usual", 90, 0, 9, 5 * time.Second, "page=1 usual"},
		{"q=phone", 90, 50, 9, 8 * time.Second, "page=1 spared, q=phone"},
		{"nearly a threshold more", 98, 50, 9, 2 * time.Second, "page=1 spared, q=phone"},
		{"a threshold and more", 250, 50, 9, 2 * time.Second, "page=1 usual, q=phone"},
		{"as before", 90, 50, 9, 9 * time.Second, "page=1 spared, q=phone"},
		{"q=phone for long", 90, 50, 9, 40 * time.Second, "page=1 spared, q=phone"},
		{"q=phone is over", 90, 0, 9, 25 * time.Second, "page=1 usual"},
	}
	for _, step := range steps {
		o.run(step.d, feed(step.page1, step.phone, step.other))
		if got := o.listing(); got != step.want {
			t.Errorf("%s: listed: %s, want %s", step.name, got, step.want)
		}
	}
}

// The same holds below nine tenths of the requests, where only the mean decides. A key that
// exceeds its mean by a threshold is no longer usual, and hides others like any key.
func TestUsualByTheMean(t *testing.T) {
	for name, kind := range overlaps {
		t.Run(name, func(t *testing.T) {
			o := newOverlapping(kind, 100)
			feed := func(page1, phone int64) func() {
				return func() {
					o.others(page1, "page=1")
					o.requests(phone, "page=1", "q=phone")
					for k := range int64(20) {
						o.others(5, fmt.Sprint("page=", 2+k))
					}
				}
			}
			o.run(5*time.Second, feed(90, 0))
			if got := o.listing(); got != "page=1 usual" {
				t.Errorf("listed: %s", got)
			}
			o.run(4*time.Second, feed(90, 50))
			if got := o.listing(); got != "page=1 spared, q=phone" {
				t.Errorf("beside q=phone, listed: %s", got)
			}
			o.run(3*time.Second, feed(300, 50))
			if got := o.listing(); got != "page=1, q=phone" {
				t.Errorf("far above its mean, listed: %s", got)
			}
		})
	}
}

// A value that floods its route is not usual for it, whatever its pages are, since there are no
// other clients to protect.
func TestAFloodAloneIsNotUsual(t *testing.T) {
	for _, idle := range []time.Duration{0, 5 * time.Second, 20 * time.Second} {
		o := newOverlapping(rules.ByCombinations, 100)
		o.run(idle, func() {})
		o.run(8*time.Second, func() {
			for page := range 10 {
				o.requests(12, fmt.Sprint("page=", page), "q=phone")
			}
		})
		if got := o.listing(); got != "q=phone" && got != "q=phone usual" {
			t.Errorf("after %v without requests, listed: %s", idle, got)
		}
	}
}

// Without totals, which instances of earlier versions do not count, the mean decides.
func TestUsualWithoutTotals(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 100)
	o.noTotals = true
	feed := func(phone int64) func() {
		return func() {
			o.others(100, "lang=en")
			o.requests(phone, "lang=en", "q=phone")
		}
	}
	o.run(5*time.Second, feed(0))
	if got := o.listing(); got != "lang=en usual" {
		t.Errorf("listed: %s", got)
	}
	o.run(15*time.Second, feed(50))
	if got := o.listing(); got != "lang=en spared, q=phone" {
		t.Errorf("beside q=phone, listed: %s", got)
	}
}

// A key that is listed again is hot since then.
func TestListedAgainIsHotSinceThen(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 100)
	background := func() {
		for range 20 {
			o.value++
			o.requests(5, fmt.Sprint("page=v", o.value), fmt.Sprint("q=v", o.value))
		}
	}
	o.run(20*time.Second, func() { // page 1 alone has q=phone's traffic
		background()
		o.requests(20, "page=1", "q=phone")
	})
	if got := o.listing(); !strings.HasPrefix(got, "page=1&q=phone") {
		t.Fatalf("listed: %s", got)
	}
	spread := o.now
	o.run(20*time.Second, func() {
		background()
		for page := range 50 {
			o.requests(5, fmt.Sprint("page=", page), "q=phone")
		}
	})
	h, ok := o.out.hot()[rules.Key{Rule: "r", Text: "GET /s?q=phone"}]
	if !ok || h.Since.Before(spread) {
		t.Errorf("listed %v, hot since %v, and spread over all pages at %v", ok, h.Since, spread)
	}
	if got := o.listing(); !strings.HasPrefix(got, "q=phone") {
		t.Errorf("listed: %s", got)
	}
}

// Random variation does not flip keys between usual, spared and listed.
func TestUsualIsSteady(t *testing.T) {
	for name, kind := range overlaps {
		t.Run(name, func(t *testing.T) {
			o := newOverlapping(kind, 100)
			state := uint64(7)
			random := func() int64 { // 0 to 15
				state = state*6364136223846793005 + 1442695040888963407
				return int64(state >> 60)
			}
			feed := func() {
				o.others(83+random(), "lang=en")
				o.requests(8+random(), "lang=en", "q=phone")
				o.others(random()/3, "lang=de")
			}
			o.run(5*time.Second, feed)
			before := len(o.out.changes)
			o.run(10*time.Minute, feed)
			if n := len(o.out.changes) - before; n > 6 {
				t.Errorf("%d changes in ten minutes:\n%s", n, strings.Join(o.out.events(), "\n"))
			}
			if got := o.listing(); got != "lang=en spared, q=phone" {
				t.Errorf("listed: %s", got)
			}
		})
	}
}

// An aggregator that adopts keys keeps their state until its own windows decide.
func TestAdoptedKeysStayUsual(t *testing.T) {
	o := newOverlapping(rules.ByEach, 100)
	o.RecordLoss(o.now)
	hot := func(params string, usual bool) published.Hot {
		return published.Hot{Key: rules.Key{Rule: "r", Text: "GET /s?" + params}, Since: o.now.Add(-time.Minute), Usual: usual, Spared: usual}
	}
	adopted := []published.Hot{hot("page=1", true), hot("q=phone", false)}
	if refused := o.Adopt(adopted, o.now); len(refused) > 0 {
		t.Fatalf("refused %v", refused)
	}
	o.out.Publish(published.Change{Hot: adopted})
	o.run(20*time.Second, func() {
		o.others(90, "page=1")
		o.requests(50, "page=1", "q=phone")
		o.others(20, "page=2")
		o.others(20, "page=3")
		if got := o.listing(); !strings.Contains(got, "page=1 spared") || !strings.Contains(got, "q=phone") {
			t.Fatalf("listed: %s", got)
		}
	})
}

// A total is not a key: it is neither hot nor suspect, and does not count in the rule's figures.
func TestATotalIsNoKey(t *testing.T) {
	for name, kind := range overlaps {
		o := newOverlapping(kind, 10)
		o.SetHeldBackBound(0, 50, 50)
		o.run(3*time.Second, func() { o.count("*", 1000) })
		if s := o.Stats(); s.Hot != 0 || s.Suspects != 0 || s.Keys != 0 || len(o.out.changes) > 0 {
			t.Errorf("%s: figures %+v, changes %v", name, s, o.out.changes)
		}
	}
}

// Keys that are all on all requests are protected together from one that is not. Requests with six
// parameters make no keys of three, so no key stands for all of them.
func TestSeveralKeysOnAllRequests(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 100)
	feed := func() {
		for range 10 {
			o.value++
			x := fmt.Sprint("x=v", o.value)
			for _, r := range []struct {
				n int64
				q string
			}{{3, "q=phone"}, {7, fmt.Sprint("q=v", o.value)}} {
				params := []string{"a=1", "b=1", "c=1", "d=1", r.q, x}
				o.count("*", r.n)
				for i, p := range params {
					o.count(p, r.n)
					for _, q := range params[i+1:] {
						o.count(p+"&"+q, r.n)
					}
				}
			}
		}
	}
	o.run(1100*time.Millisecond, feed) // as soon as a whole window was seen
	if got := o.listing(); !strings.HasSuffix(got, "spared, q=phone") {
		t.Errorf("listed: %s", got)
	}
	if s := o.Stats(); s.Spared == 0 || s.Usual != s.Spared || s.Hot != s.Usual+1 {
		t.Errorf("figures %+v", s)
	}
}

// A key on all requests stays usual however many these become. It is limited once it exceeds its
// mean by a threshold, without the explained requests, until the excess falls below half of that.
func TestAKeyOnAllRequestsThatGrows(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 100)
	o.cfg.OnVerdict = func(v Verdict) {
		if v.Kind == verdictUnusual && v.Text == "GET /s?lang=en" {
			t.Errorf("usual no longer at %v", v.At.Sub(noon))
		}
	}
	for _, step := range []struct {
		name        string
		more, phone int64 // requests in a tenth of a second
		d           time.Duration
		want        string
	}{
		{"steady", 0, 0, 20 * time.Second, "lang=en usual"},
		{"more by 0.9 thresholds", 9, 30, time.Second, "lang=en spared, q=phone"},
		{"more by 1.6 thresholds", 20, 30, time.Second, "lang=en usual, q=phone"},
		{"more by 0.7 thresholds", 16, 30, 1100 * time.Millisecond, "lang=en usual, q=phone"},
		{"as before", 0, 30, 1100 * time.Millisecond, "lang=en spared, q=phone"},
		{"three times as many", 200, 30, time.Second, "lang=en usual, q=phone"},
	} {
		o.run(step.d, func() {
			o.others(100+step.more, "lang=en")
			o.requests(step.phone, "lang=en", "q=phone")
		})
		if got := o.listing(); got != step.want {
			t.Errorf("%s: listed: %s, want %s", step.name, got, step.want)
		}
	}
}

// If part of a group is unknown, its key with the highest count decides. A key that became hot in
// the middle of a window was not in the window that ended just before, which is kept. So it rose,
// and is not usual compared with later keys.
func TestTheWindowThatHasJustEndedIsKnown(t *testing.T) {
	o := newOverlapping(rules.ByCombinations, 10)
	o.run(2*time.Second, func() {})
	o.run(500*time.Millisecond, func() { o.requests(16, "a=3", "c=1") })
	o.run(500*time.Millisecond, func() { o.requests(7, "a=1", "b=1", "c=1") })
	if got := o.listing(); got != "a=1&b=1, a=3, c=1 spared" {
		t.Errorf("listed: %s", got)
	}
}

func TestGroupTally(t *testing.T) {
	var low groupTally
	for _, n := range []int64{5, 7, 3} {
		low.add(n)
	}
	for repeated, want := range map[int64]int64{0: 15, 6: 9, 10: 7, published.Unknown: 7} {
		if got := low.atLeast(repeated); got != want {
			t.Errorf("of %d repeats: at least %d requests, want %d", repeated, got, want)
		}
	}
}
