package limiter

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

var _ = []interface {
	storable
	quotaSwitcher
}{&window[fixedFrame]{}, &window[logFrame]{}, &window[blockFrame]{}}

// TestWindowsState checks that a state read back equals the state that was written.
func TestWindowsState(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		t.Run(string(algorithm), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				q := drawWindowQuota(t, algorithm)
				ask := func(t *rapid.T) Request {
					return Request{
						Kind: rapid.SampledFrom([]OpKind{Take, Peek, AtMost, Reserve, Charge}).Draw(t, "kind"), N: rapid.Int64Range(0, 6).Draw(t, "n"),
						Within: time.Duration(rapid.Int64Range(0, int64(3*q.Rate.Per)).Draw(t, "within")),
					}
				}
				at := time.Duration(rapid.Int64Range(0, 1e18).Draw(t, "start"))
				later := func() { at += time.Duration(rapid.Int64Range(0, int64(q.Rate.Per)).Draw(t, "later")) }
				s, told := newWindowState(t, q, at), at
				for range rapid.IntRange(0, 20).Draw(t, "asks") {
					told = at
					s.Do(at, ask(t))
					later()
				}
				n := s.(storable).numbers()
				restored := newWindowState(t, q, 0)
				if !restored.(storable).setNumbers(n) {
					t.Fatalf("not restored: %d", n)
				}
				if lagging := told - time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "lag")); lagging >= 0 {
					a := Request{Kind: Peek, N: 1}
					if want, got := s.Do(lagging, a), restored.Do(lagging, a); got != want {
						t.Fatalf("%v before %v:\n got %+v\nwant %+v", told-lagging, told, got, want)
					}
				}
				for range 10 {
					a := ask(t)
					if want, got := s.Do(at, a), restored.Do(at, a); got != want {
						t.Fatalf("%+v at %v:\n got %+v\nwant %+v", a, at, got, want)
					}
					later()
				}
			})
		})
	}
}

func TestWindowsStateRefused(t *testing.T) {
	for name, n := range map[string][]int64{
		"nothing":                nil,
		"a time without permits": {0, 5},
		"now beyond time":        {maxNow + 1},
		"now below 0":            {-1},
		"a slot beyond time":     {0, maxNow, 1, 1, 1},
		"a slot before another":  {9, 5, 1, -1, 1},
		"due beyond time":        {0, maxNow, 1, 1},
		"too many permits":       {0, 1, maxFill + maxOwed + 1},
		"too many in all":        {0, 1, maxFill, 1, maxFill},
		"below 0":                {0, 1, -1},
	} {
		for _, algorithm := range windowAlgorithms {
			if windowStates[algorithm](windowQuota(algorithm, 3, time.Second), 0).(storable).setNumbers(n) {
				t.Errorf("%s: %s is taken for a state", algorithm, name)
			}
		}
	}
}

// FuzzWindowsState checks that any numbers are either refused or a valid state.
func FuzzWindowsState(f *testing.F) {
	varints := func(numbers ...int64) (b []byte) {
		for _, n := range numbers {
			b = binary.AppendVarint(b, n)
		}
		return b
	}
	f.Add([]byte{}, int64(0))
	f.Add(varints(0), int64(0))
	f.Add(varints(0, 9, 0), int64(0)) // a future window, all of it returned
	for _, algorithm := range windowAlgorithms {
		s := windowStates[algorithm](windowQuota(algorithm, 3, time.Second), 0)
		s.Do(5*time.Second, Request{N: 2})
		s.Do(5*time.Second, Request{Kind: Reserve, N: 3, Within: time.Minute})
		f.Add(varints(s.(storable).numbers()...), int64(5*time.Second))
	}
	f.Fuzz(func(t *testing.T, b []byte, now int64) {
		var numbers []int64
		for n, size := binary.Varint(b); size > 0; n, size = binary.Varint(b) {
			numbers, b = append(numbers, n), b[size:]
		}
		for _, algorithm := range windowAlgorithms {
			s := windowStates[algorithm](windowQuota(algorithm, 3, time.Second), 0)
			if !s.(storable).setNumbers(numbers) {
				continue
			}
			for _, kind := range []OpKind{Return, Peek, Take, Reserve, Charge, AtMost, Return} {
				r := s.Do(time.Duration(now), Request{Kind: kind, N: 1, Within: time.Hour, Mark: now + 9})
				if r.Remaining < 0 || r.RetryAfter < 0 || r.ResetAfter < 0 || r.Delay < 0 || s.FreshAfter(time.Duration(now)) < 0 {
					t.Fatalf("%s %d at %d: %+v", algorithm, numbers, now, r)
				}
			}
			again := windowStates[algorithm](windowQuota(algorithm, 3, time.Second), 0)
			if !again.(storable).setNumbers(s.(storable).numbers()) {
				t.Fatalf("%s %d: what it became is refused", algorithm, numbers)
			}
		}
	})
}

func TestWindowsAllocations(t *testing.T) {
	for _, algorithm := range windowAlgorithms {
		for _, calendar := range []rules.Calendar{"", rules.CalendarMinute} {
			q := windowQuota(algorithm, 40, time.Minute)
			if q.Calendar = calendar; calendar != "" && algorithm != rules.FixedWindow {
				continue
			}
			var now time.Duration
			s := newWindowState(t, q, now)
			for _, ask := range []Request{{N: 1}, {Kind: Peek, N: 1}, {Kind: AtMost, N: 9}, {Kind: Reserve, N: 1, Within: time.Second}, {Kind: Charge, N: 1}} {
				if n := testing.AllocsPerRun(1000, func() {
					now += time.Second
					s.Do(now, ask)
				}); n != 0 {
					t.Errorf("%s %s: %+v: %v allocations", algorithm, calendar, ask, n)
				}
			}
		}
	}
}

// TestWindowsAdapt checks that the takes in logs and blocks survive a change of the quota.
func TestWindowsAdapt(t *testing.T) {
	quota := func(a rules.Algorithm, n int64, per time.Duration, blocks int) *rules.Quota {
		q := windowQuota(a, n, per)
		q.Blocks = blocks
		return q
	}
	log := func(n int64, per time.Duration) *rules.Quota { return quota(rules.SlidingLog, n, per, 0) }
	blocks := func(n int64, per time.Duration, b int) *rules.Quota {
		return quota(rules.SlidingBlocks, n, per, b)
	}
	for name, c := range map[string]struct {
		from, to *rules.Quota
		want     Result // result of a Peek of 1 at 105 s, after takes of 2 at 100 s and 1 at 104 s
	}{
		"A7: log, a higher limit":          {log(3, 10*sec), log(5, 10*sec), allowedResult(5, 2, 9*sec)},
		"A7: log, a lower limit":           {log(3, 10*sec), log(1, 10*sec), deniedResult(1, 0, 9*sec, 9*sec)},
		"A7: log, a longer window":         {log(3, 10*sec), log(3, 20*sec), deniedResult(3, 0, 15*sec, 19*sec)},
		"A7: log, a shorter window":        {log(3, 10*sec), log(3, 3*sec), allowedResult(3, 2, 2*sec)},
		"A7: blocks, a higher limit":       {blocks(3, 10*sec, 5), blocks(5, 10*sec, 5), allowedResult(5, 2, 9*sec)},
		"A7: blocks, a longer window":      {blocks(3, 10*sec, 5), blocks(3, 20*sec, 10), deniedResult(3, 0, 15*sec, 19*sec)},
		"A7: blocks, more of them":         {blocks(3, 10*sec, 5), blocks(3, 10*sec, 10), deniedResult(3, 0, 6*sec, 10*sec)}, // at the end of the old blocks
		"A7: blocks, fewer of them":        {blocks(3, 10*sec, 10), blocks(3, 10*sec, 2), deniedResult(3, 0, 5*sec, 5*sec)},
		"blocks, what has left then":       {blocks(3, 10*sec, 5), blocks(3, 2*sec, 2), allowedResult(3, 2, 2*sec)},
		"the same log, under another name": {log(3, 10*sec), log(3, 10*sec), deniedResult(3, 0, 5*sec, 9*sec)},
		"the same blocks":                  {blocks(3, 10*sec, 5), blocks(3, 10*sec, 5), deniedResult(3, 0, 5*sec, 9*sec)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWindowState(t, c.from, 0)
			s.Do(100*sec, Request{N: 2})
			s.Do(104*sec, Request{N: 1})
			if !s.(quotaSwitcher).Adapt(c.to, 105*sec) {
				t.Fatal("refused")
			}
			runWindowSteps(t, s, []windowStep{{105 * sec, Request{Kind: Peek, N: 1}, c.want}})
		})
	}
}

func TestSlotLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l slotLog
		var want []slot
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				s := slot{rapid.Int64Range(0, 50).Draw(t, "at"), rapid.Int64Range(1, 9).Draw(t, "n")}
				l.add(s)
				i := 0
				for i < len(want) && want[i].start < s.start {
					i++
				}
				if i < len(want) && want[i].start == s.start {
					want[i].n += s.n
				} else {
					want = append(want[:i], append([]slot{s}, want[i:]...)...)
				}
			case 2:
				if len(want) > 0 {
					if got := l.pop(); got != want[0] {
						t.Fatalf("%v, want %v", got, want[0])
					}
					want = want[1:]
				}
			case 3:
				if len(want) > 0 {
					i := rapid.IntRange(0, len(want)-1).Draw(t, "which")
					l.remove(i)
					want = append(want[:i:i], want[i+1:]...)
				}
			}
			other := l.copied()
			if !slices.Equal(l.live(), want) || !slices.Equal(other.live(), want) {
				t.Fatalf("%v, want %v", l.live(), want)
			}
			for i, s := range want {
				if l.after(s.start) != i+1 || l.after(s.start-1) != i {
					t.Fatalf("%v: %d and %d begin by %d and before it", want, l.after(s.start), l.after(s.start-1), s.start)
				}
			}
		}
	})
}
