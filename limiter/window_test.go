package limiter

import (
	"math"
	"testing"
	"time"
	_ "time/tzdata" // has the tests' zones on every machine

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/limiter/internal/calendar"
	"github.com/hotparam/hotparam/rules"
)

// windowStates creates the state of a quota, for each algorithm with windows.
var windowStates = map[rules.Algorithm]func(*rules.Quota, time.Duration) State{
	rules.FixedWindow: newFixedWindow, rules.SlidingLog: newSlidingLog, rules.SlidingBlocks: newSlidingBlocks,
}

var windowAlgorithms = []rules.Algorithm{rules.FixedWindow, rules.SlidingLog, rules.SlidingBlocks}

func windowQuota(a rules.Algorithm, n int64, per time.Duration) *rules.Quota {
	q := rules.Quota{Algorithm: a, Rate: rules.Rate{N: n, Per: per}}.WithDefaults()
	return &q
}

func newWindowState(t rapid.TB, q *rules.Quota, now time.Duration) State {
	t.Helper()
	if err := q.Validate(); err != nil {
		t.Fatal(err)
	}
	return windowStates[q.Algorithm](q, now)
}

// windowStep is a request at an instant and its expected result.
type windowStep struct {
	at   time.Duration
	ask  Request
	want Result
}

func allowedResult(limit, remaining int64, reset time.Duration) Result {
	return Result{Decision: rules.Decision{
		Allowed: true, Reason: rules.ReasonWithin, Limit: limit, Remaining: remaining, ResetAfter: reset,
	}}
}

func (r Result) took(n int64, mark time.Duration) Result {
	r.Taken, r.Mark = n, int64(mark)
	return r
}

func (r Result) after(delay time.Duration) Result {
	r.Delay = delay
	return r
}

func deniedResult(limit, remaining int64, retry, reset time.Duration) Result {
	return Result{Decision: rules.Decision{
		Reason: rules.ReasonLimited, Limit: limit, Remaining: remaining, RetryAfter: retry, ResetAfter: reset,
	}}
}

// slotted returns got, with the start of the slot as its mark if want has that mark. A window
// identifies a take by an instant within the slot.
func slotted(got, want Result) Result {
	if want.Taken > 0 && got.Mark >= want.Mark {
		got.Mark = want.Mark
	}
	got.Receipt = Receipt{}
	return got
}

func runWindowSteps(t *testing.T, s State, steps []windowStep) {
	t.Helper()
	for i, step := range steps {
		if got := slotted(s.Do(step.at, step.ask), step.want); got != step.want {
			t.Fatalf("step %d, %+v at %v:\n got %+v\nwant %+v", i, step.ask, step.at, got, step.want)
		}
	}
}

// slotsWindow is an exact model. It holds every permit that was ever taken, with the instants from
// and until which it counts.
type slotsWindow struct {
	q       *rules.Quota
	permits []modelPermit // sorted by begin
	open    modelPermit   // the fixed window that stays open after all its permits were returned
}

type modelPermit struct{ begin, end time.Duration }

// span returns when a permit taken at t counts if no window is open.
func (m *slotsWindow) span(t time.Duration) modelPermit {
	switch {
	case m.q.Algorithm == rules.SlidingLog:
		return modelPermit{t, t + m.q.Rate.Per}
	case m.q.Algorithm == rules.SlidingBlocks:
		length := m.q.Rate.Per / time.Duration(m.q.Blocks)
		return modelPermit{t / length * length, t/length*length + m.q.Rate.Per}
	case m.q.Calendar != "":
		begin, end := calendar.Window(m.q, t)
		return modelPermit{begin, end}
	}
	for _, p := range m.permits {
		if p.begin <= t && t < p.end {
			return p
		}
	}
	if m.open.begin <= t && t < m.open.end {
		return m.open
	}
	if n := len(m.permits); n > 0 && m.permits[n-1].begin > t {
		for b := m.permits[n-1].begin; ; b -= m.q.Rate.Per {
			if b <= t {
				return modelPermit{b, b + m.q.Rate.Per}
			}
		}
	}
	return modelPermit{t, t + m.q.Rate.Per}
}

func (m *slotsWindow) used(t time.Duration) (n int64) {
	for _, p := range m.permits {
		if p.end > t {
			n++
		}
	}
	return n
}

// free returns how many permits there are at t if none is taken before.
func (m *slotsWindow) free(t time.Duration) int64 {
	n := len(m.permits)
	if m.q.Algorithm == rules.FixedWindow && n > 0 && m.permits[n-1].begin > t {
		return 0
	}
	return m.q.Rate.N - m.used(t)
}

// room returns the first instant from t on at which n permits are free.
func (m *slotsWindow) room(t time.Duration, n int64) time.Duration {
	best := time.Duration(math.MaxInt64)
	if m.free(t) >= n {
		return t
	}
	for _, p := range m.permits {
		for _, at := range []time.Duration{p.begin, p.end} {
			if at > t && at < best && m.free(at) >= n {
				best = at
			}
		}
	}
	return best
}

func (m *slotsWindow) add(t time.Duration, n int64) time.Duration {
	p := m.span(t)
	at := len(m.permits)
	for at > 0 && m.permits[at-1].begin > p.begin {
		at--
	}
	for range n {
		m.permits = append(m.permits[:at], append([]modelPermit{p}, m.permits[at:]...)...)
	}
	return p.begin
}

func (m *slotsWindow) giveBack(t, mark time.Duration, n int64) {
	for i := 0; i < len(m.permits) && n > 0; {
		if p := m.permits[i]; p.begin == mark && p.end > t {
			if p.begin <= t {
				m.open = p
			}
			m.permits = append(m.permits[:i], m.permits[i+1:]...)
			n--
			continue
		}
		i++
	}
}

func (m *slotsWindow) do(t time.Duration, ask Request) Result {
	limit, keep := m.q.Rate.N, max(ask.Keep, 0)
	never := ask.N+keep > limit
	if ask.Kind == AtMost {
		never = 1+keep > limit
	}
	r := Result{}
	need := ask.N
	switch {
	case ask.N < 0:
	case ask.N == 0:
		r.Allowed = true
	case ask.Kind == Charge:
		r.Allowed, r.Taken, r.Mark = true, ask.N, int64(m.add(t, ask.N))
	case ask.Kind == Return:
		r.Allowed = true
		m.giveBack(t, time.Duration(ask.Mark), ask.N)
	case ask.Kind == AtMost && min(ask.N, m.free(t)-keep) > 0:
		r.Allowed, r.Taken = true, min(ask.N, m.free(t)-keep)
		r.Mark = int64(m.add(t, r.Taken))
	case never:
	case ask.Kind != AtMost && m.free(t) >= ask.N+keep:
		if r.Allowed = true; ask.Kind != Peek {
			r.Taken, r.Mark = ask.N, int64(m.add(t, ask.N))
		}
	default:
		if ask.Kind == AtMost {
			need = 1
		}
		if m.q.CountDenied && (ask.Kind == Take || ask.Kind == AtMost) {
			m.add(t, ask.N)
		}
		at := m.room(t, need+keep)
		r.RetryAfter = at - t
		if ask.Kind == Reserve {
			if r.RetryAfter -= max(ask.Within, 0); r.RetryAfter <= 0 {
				r.Allowed, r.RetryAfter, r.Delay, r.Taken = true, 0, at-t, ask.N
				r.Mark = int64(m.add(at, ask.N))
			}
		}
	}
	r.Limit, r.Remaining = limit, max(0, m.free(t))
	if r.Reason = rules.ReasonLimited; r.Allowed {
		r.Reason = rules.ReasonWithin
	}
	if n := len(m.permits); n > 0 && m.used(t) > 0 {
		r.ResetAfter = m.permits[n-1].end - t
	}
	return r
}

// TestWindowsModel compares every field of every result with the model's.
func TestWindowsModel(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := windowQuota(algorithm, rapid.Int64Range(1, 6).Draw(t, "n"), 12*time.Second)
				q.CountDenied = rapid.IntRange(0, 3).Draw(t, "count denied") == 0
				switch algorithm {
				case rules.SlidingBlocks:
					q.Blocks = rapid.SampledFrom([]int{1, 2, 3, 4, 12}).Draw(t, "blocks")
				case rules.FixedWindow:
					if rapid.IntRange(0, 3).Draw(t, "calendar") == 0 {
						q.Calendar, q.Rate.Per = rules.CalendarMinute, time.Minute
					}
				}
				at := time.Duration(rapid.Int64Range(0, 200).Draw(t, "start")) * time.Second
				s, m := newWindowState(t, q, at), &slotsWindow{q: q}
				var taken, marked []Result // the model's results, and the same with the marks of the state
				for range rapid.IntRange(1, 40).Draw(t, "asks") {
					at += time.Duration(rapid.SampledFrom([]int64{0, 0, 0, 1, 1, 2, 3, 5, 11, 12, 13, 60}).Draw(t, "later")) * time.Second
					ask := Request{
						Kind: rapid.SampledFrom([]OpKind{Take, Take, Peek, AtMost, Reserve, Reserve, Charge, Return}).Draw(t, "kind"),
						N:    rapid.Int64Range(-1, 7).Draw(t, "n"),
						Keep: max(0, rapid.Int64Range(-3, 3).Draw(t, "keep")),
					}
					mark := int64(0)
					switch ask.Kind {
					case Reserve:
						ask.Within = time.Duration(rapid.Int64Range(-1, 60).Draw(t, "within")) * time.Second
					case Return:
						if len(taken) == 0 {
							continue
						}
						i := rapid.IntRange(0, len(taken)-1).Draw(t, "which")
						ask.N, ask.Mark = rapid.Int64Range(0, taken[i].Taken).Draw(t, "back"), taken[i].Mark
						mark = marked[i].Mark
						taken[i].Taken -= ask.N
					}
					want := m.do(at, ask)
					ask.Mark = mark
					did := s.Do(at, ask)
					if got := slotted(did, want); got != want {
						t.Fatalf("%+v at %v:\n got %+v\nwant %+v", ask, at, got, want)
					}
					if want.Taken > 0 {
						taken, marked = append(taken, want), append(marked, did)
					}
					fresh := s.FreshAfter(at)
					if fresh < want.ResetAfter || fresh > want.ResetAfter && algorithm != rules.FixedWindow {
						t.Fatalf("fresh after %v, reset after %v", fresh, want.ResetAfter)
					}
				}
			})
		})
	}
}
