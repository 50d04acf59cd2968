package claims

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

var testContext = context.Background()

// The reference gives the same counts as adding up all events by their times.
func TestReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]time.Duration{time.Second, 1300 * time.Millisecond, 10 * time.Second, time.Minute}).Draw(t, "window")
		rule := NewRule(rapid.Int64Range(1, 30).Draw(t, "n"), d, 0)
		ref := newReference(rule, 5, int64(grace))
		type event struct {
			instant int64
			key     int32
			n       uint32
		}
		var events []event
		sum := func(key int32, last int64) (sum int64) {
			for _, e := range events {
				if pane := e.instant / rule.width(); e.key == key && pane <= last && pane > last-exact.NewWindow(rule.D).Panes {
					sum += int64(e.n)
				}
			}
			return sum
		}
		now := epoch + rapid.Int64Range(0, second).Draw(t, "start")
		once := int32(5)
		ref.advanceTo(now)
		ref.closed = ref.index(now) - 1
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			now += rapid.SampledFrom([]int64{0, 1, tenthSecond / 3, tenthSecond, second, int64(d), 9 * int64(d)}).Draw(t, "pause")
			for ref.closed < ref.index(now)-1 {
				if ref.index(now)-ref.closed > ref.ring/2 { // it keeps only so much
					ref.advanceTo(ref.paneEnd(ref.closed + 1))
				}
				for _, key := range ref.closeWindow() {
					if got, want := int64(ref.sums[key]), sum(key, ref.closed); got != want || want < rule.N {
						t.Fatalf("key %d has %d in a window that is over, want %d", key, got, want)
					}
				}
			}
			ref.advanceTo(now)
			e := event{now, rapid.Int32Range(0, 5).Draw(t, "key"), rapid.Uint32Range(1, 9).Draw(t, "count")}
			if e.key == 5 {
				e.key, e.n = once, 1
				once++
			}
			events = append(events, e)
			ref.add(e.key, e.n)
			key, last := rapid.Int32Range(0, once).Draw(t, "ask"), ref.newest-rapid.Int64Range(0, ref.panes).Draw(t, "back")
			if got, want := ref.trueCount(key, last), sum(key, last); got != want {
				t.Fatalf("key %d: %d, want %d", key, got, want)
			}
			highest := int64(0)
			for p := last; p <= ref.newest; p++ {
				highest = max(highest, sum(key, p))
			}
			if got := ref.highestCount(key, last, ref.newest); got != highest {
				t.Fatalf("key %d: at most %d, want %d", key, got, highest)
			}
		}
	})
}

// A judge names each claim that a wrong publication breaks.
func TestJudgeFindsWhatIsWrong(t *testing.T) {
	// One key, 10 requests in each tenth of the first second.
	rule := NewRule(50, time.Second, time.Second)
	hot := published.Hot{Key: rules.Key{Rule: "r0", Text: "GET /search?q=0"}, Low: 50, High: 50, Since: time.Unix(0, epoch+second/2-1)}
	cool := published.Hot{Key: hot.Key, Until: time.Unix(0, epoch+3*second)}
	with := func(h published.Hot, f func(*published.Hot)) published.Hot { f(&h); return h }
	type events []published.Hot
	for name, c := range map[string]struct {
		early, late events // when half a second has passed, and three
		tell        func(j *judge)
		want        []Claim
	}{
		"right":         {early: events{hot}, late: events{cool}},
		"nothing":       {want: []Claim{Missed}},
		"too late":      {late: events{hot, cool}, want: []Claim{Missed}},
		"never cool":    {early: events{hot}, want: []Claim{Stuck}},
		"low":           {early: events{with(hot, func(h *published.Hot) { h.Low = 51 })}, late: events{cool}, want: []Claim{LowAbove}},
		"low below":     {early: events{with(hot, func(h *published.Hot) { h.Low = 49 })}, late: events{cool}, want: []Claim{FalseHot}},
		"to come":       {early: events{with(hot, func(h *published.Hot) { h.Since = time.Unix(0, epoch+second) })}, late: events{cool}, want: []Claim{FalseHot, LowAbove}},
		"another key":   {early: events{hot, with(hot, func(h *published.Hot) { h.Text = "GET /search?q=1" })}, late: events{cool}, want: []Claim{LowAbove, FalseHot, Stuck}},
		"no key":        {early: events{hot, with(hot, func(h *published.Hot) { h.Text = "q" })}, late: events{cool}, want: []Claim{FalseHot}},
		"twice":         {early: events{hot, hot}, late: events{cool}, want: []Claim{NotInTurn}},
		"cool first":    {early: events{hot}, late: events{cool, cool}, want: []Claim{NotInTurn}},
		"in the hold":   {early: events{hot}, late: events{with(cool, func(h *published.Hot) { h.Until = time.Unix(0, epoch+second) })}, want: []Claim{CoolEarly, HoldBroken, HighBelow, Inexact}},
		"within a pane": {early: events{hot}, late: events{with(cool, func(h *published.Hot) { h.Until = h.Until.Add(1) })}, want: []Claim{CoolEarly}},
		"high":          {early: events{hot}, late: events{with(cool, func(h *published.Hot) { h.High = 1 })}, want: []Claim{Inexact}},
		"cool low":      {early: events{hot}, late: events{with(cool, func(h *published.Hot) { h.Low = 1 })}, want: []Claim{LowAbove, Inexact}},
		"not known":     {early: events{hot}, late: events{with(cool, func(h *published.Hot) { h.High = published.Unknown })}, want: []Claim{CoolEarly, Inexact}},
		"refresh":       {early: events{hot}, late: events{cool}, tell: func(j *judge) { j.Refresh(0, []published.Hot{cool}) }, want: []Claim{NotInTurn}},
		"suspect":       {early: events{hot}, late: events{cool}, tell: func(j *judge) { j.Suspects(0, []published.Hot{cool}) }, want: []Claim{Inexact}},
		"suspect, hot":  {early: events{hot}, tell: func(j *judge) { j.Suspects(0, []published.Hot{cool}) }, want: []Claim{NotInTurn, Inexact, Stuck}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Steady(StreamSize{Keys: 2, Instances: 1, Length: time.Second}, 100, false)(1)
			if err != nil {
				t.Fatal(err)
			}
			j := newJudge(&Case{Rules: []HotRule{rule}, Parts: 1}, s)
			ref := j.rules[0].ref
			ref.advanceTo(epoch)
			ref.closed = ref.index(epoch) - 1
			for instant := epoch; instant < epoch+4*second; instant += tenthSecond {
				ref.advanceTo(instant)
				for _, e := range s.Next(instant, instant+tenthSecond, nil) {
					ref.add(e.Key, uint32(e.N))
				}
				switch j.now = instant + tenthSecond; j.now {
				case epoch + second/2:
					publish(j, c.early)
				case epoch + 3*second + 3*tenthSecond:
					publish(j, c.late)
					if c.tell != nil {
						c.tell(j)
					}
				}
				j.judgeClosedWindows()
			}
			j.checkAllCool()
			for claim := range claims {
				if got, want := j.broken[claim] > 0, slices.Contains(c.want, claim); got != want {
					t.Errorf("%v: %v, want %v: %q", claim, got, want, j.examples)
				}
			}
		})
	}
}

// publish publishes keys as hot, or as cool where they have an end.
func publish(j *judge, all []published.Hot) {
	for _, h := range all {
		if h.Until.IsZero() {
			j.Publish(published.Change{Hot: []published.Hot{h}})
		} else {
			j.Publish(published.Change{Cool: []published.Hot{h}})
		}
	}
}

// Values are drawn as often as their weights say.
func TestZipf(t *testing.T) {
	s, err := Zipf(StreamSize{Rate: 1e6, Keys: 100, Instances: 3, Length: time.Second}, 1)(1)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int, 100)
	for _, e := range s.Next(epoch, epoch+second, nil) {
		counts[e.Key]++
	}
	for key, n := range counts {
		if want := 1e6 / 5.187 / float64(key+1); float64(n) < want*0.8 || float64(n) > want*1.2 { // 5.187: the 100th harmonic number
			t.Errorf("key %d came %d times, want about %.0f", key, n, want)
		}
	}
}
