package limiter

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// quickQuotas returns quotas whose words are lent, quotas of windows, and others.
func quickQuotas() []rules.Quota {
	second, minute := rules.Rate{N: 3, Per: time.Second}, rules.Rate{N: 7, Per: time.Minute}
	all := []rules.Quota{
		{Rate: second},
		{Rate: second, Burst: 5},
		{Rate: minute, Burst: 5},
		{Rate: minute, Burst: 20, Missing: 3},
		{Algorithm: rules.GCRA, Rate: second, Burst: 4},
		{Algorithm: rules.LeakyBucket, Rate: second, Burst: 4},
		{Algorithm: rules.LeakyBucket, Rate: second, Burst: 4, Shape: true},
		{Rate: second, Burst: 4, Penalty: 2 * time.Second},
		{Rate: second, Burst: 4, WarmUp: 10 * time.Second},
		{Algorithm: rules.FixedWindow, Rate: second},
		{Algorithm: rules.FixedWindow, Rate: minute},
		{Algorithm: rules.FixedWindow, Rate: minute, Calendar: rules.CalendarMinute},
		{Algorithm: rules.SlidingLog, Rate: second},
		{Algorithm: rules.SlidingLog, Rate: minute, CountDenied: true},
		{Algorithm: rules.SlidingBlocks, Rate: minute},
		{Burst: rules.Unlimited},
	}
	for i := range all {
		all[i] = all[i].WithDefaults()
	}
	return all
}

// A Limiter takes from a Memory exactly as an Op does: with one quota or many, with any other
// requests of the keys in between, while keys are dropped, after a restart, and on any clock.
func TestQuickTakesAreTakes(t *testing.T) {
	quotas := quickQuotas()
	rapid.Check(t, func(rt *rapid.T) {
		now := 1000 * time.Hour
		open := func() *Memory {
			m, err := NewMemory(MemoryConfig{MaxKeys: 4, Clock: func() time.Duration { return now }})
			if err != nil {
				rt.Fatal(err)
			}
			return m
		}
		quick, plain := open(), open()
		plain.seed = quick.seed // the same keys share a chain and are dropped together
		some := rapid.SliceOfN(rapid.SampledFrom(quotas), 1, 3).Draw(rt, "quotas")
		limiters := make([]*Limiter, len(some))
		on := func() {
			for i := range some {
				l, err := New(quick, "limit", some[i])
				if err != nil {
					rt.Fatal(err)
				}
				limiters[i] = l
			}
		}
		on()
		ctx := context.Background()
		keys := []string{"a", "b", "a key of more bytes than fit beside a word"}
		last := 0 // quotas stay for a while
		type taken struct {
			op  Op
			res [2]Result
		}
		var reserved []taken
		both := func(op Op) (a, b Result) {
			for i, m := range []*Memory{quick, plain} {
				r, err := m.Do(ctx, op)
				if err != nil {
					rt.Fatal(err)
				}
				if i == 0 {
					a = r
				} else {
					b = r
				}
			}
			return a, b
		}
		op := func() Op {
			return Op{Quota: &some[last], Name: "limit", Key: rapid.SampledFrom(keys).Draw(rt, "key")}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"take": func(rt *rapid.T) {
				op := op()
				for range rapid.IntRange(1, 40).Draw(rt, "times") {
					op.N = rapid.SampledFrom([]int64{1, 1, 1, 1, 2, 3, 0, -1, 100}).Draw(rt, "n")
					d, err := limiters[last].AllowN(ctx, op.Key, op.N)
					want, _ := plain.Do(ctx, op)
					want.Rule = "limit"
					if err != nil || d != want.Decision {
						rt.Fatalf("%v, take %d of %q under %+v:\n%+v, %v, want\n%+v", now, op.N, op.Key, some[last], d, err, want.Decision)
					}
				}
			},
			"ask": func(rt *rapid.T) {
				op := op()
				op.Kind = rapid.SampledFrom([]OpKind{Take, Peek, AtMost, Reserve, Charge, Forget}).Draw(rt, "kind")
				op.N = rapid.Int64Range(0, 6).Draw(rt, "n")
				op.Within = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(rt, "within")
				a, b := both(op)
				if a != b {
					rt.Fatalf("%v, %+v under %+v:\n%+v, want\n%+v", now, op.Request, some[last], a, b)
				}
				if a.Taken > 0 {
					reserved = append(reserved, taken{op, [2]Result{a, b}})
				}
			},
			"return": func(rt *rapid.T) {
				if len(reserved) == 0 {
					rt.Skip("nothing was reserved")
				}
				i := rapid.IntRange(0, len(reserved)-1).Draw(rt, "which")
				op := reserved[i].op
				op.Request = reserved[i].res[0].Return()
				reserved = append(reserved[:i], reserved[i+1:]...)
				if a, b := both(op); a != b {
					rt.Fatalf("%v, %+v under %+v:\n%+v, want\n%+v", now, op.Request, op.Quota, a, b)
				}
			},
			"another quota": func(rt *rapid.T) { last = rapid.IntRange(0, len(some)-1).Draw(rt, "quota") },
			"time passes": func(rt *rapid.T) {
				now += rapid.SampledFrom([]time.Duration{1, time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second, 2 * time.Minute}).Draw(rt, "by")
			},
			"the clock is set back": func(rt *rapid.T) {
				now -= rapid.SampledFrom([]time.Duration{1, time.Second, 30 * time.Second, 61 * time.Second, time.Hour}).Draw(rt, "by")
			},
			"sweep": func(*rapid.T) { quick.Sweep(); plain.Sweep() },
			"restart": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
					rt.Skip("not now")
				}
				for _, m := range []**Memory{&quick, &plain} {
					var b bytes.Buffer
					next := open()
					next.seed = (*m).seed
					if _, _, err := (*m).Snapshot(&b); err != nil {
						rt.Fatal(err)
					}
					if _, _, err := next.Restore(&b); err != nil {
						rt.Fatal(err)
					}
					*m = next
				}
				reserved = nil
				on()
			},
			"": func(rt *rapid.T) {
				if a, b := quick.Stats(), plain.Stats(); a.Keys != b.Keys || a.Displaced != b.Displaced {
					rt.Fatalf("%+v, want %+v", a, b)
				}
			},
		})
	})
}

// Exactly the available permits are granted, however many callers ask at once, and whatever quotas,
// other requests, sweeps and snapshots come in between.
func TestQuickTakesAreExact(t *testing.T) {
	const burst, workers = 2000, 8
	hour := func(n int64, a rules.Algorithm) rules.Quota {
		return rules.Quota{Algorithm: a, Rate: rules.Rate{N: n, Per: time.Hour}, Burst: burst}
	}
	for _, c := range []struct {
		name   string
		quotas []rules.Quota
		clock  func() time.Duration
	}{
		{"a bucket", []rules.Quota{hour(1, rules.TokenBucket)}, nil},
		{"buckets of other rates", []rules.Quota{hour(1, rules.TokenBucket), hour(7, rules.TokenBucket), hour(3, rules.GCRA)}, stopped},
		{"a fixed window", []rules.Quota{hour(burst, rules.FixedWindow)}, nil},
		{"a sliding log", []rules.Quota{hour(burst, rules.SlidingLog)}, nil},
		{"sliding blocks", []rules.Quota{hour(burst, rules.SlidingBlocks)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := NewMemory(MemoryConfig{MaxKeys: 8, Clock: c.clock})
			if err != nil {
				t.Fatal(err)
			}
			l, err := New(m, "limit", c.quotas[0])
			if err != nil {
				t.Fatal(err)
			}
			keys := []string{"hot", "also hot, and a key of many bytes"}
			var passed [2]atomic.Int64
			var wg sync.WaitGroup
			ctx := t.Context()
			for w := range workers {
				wg.Go(func() {
					for i := range 2 * burst * len(keys) / workers {
						k := i % len(keys)
						d, err := l.Allow(ctx, keys[k])
						if err != nil {
							t.Error(err)
						}
						if d.Allowed {
							passed[k].Add(1)
						}
						switch {
						case i%32 == w:
							if _, err := l.Peek(ctx, keys[k], 1); err != nil {
								t.Error(err)
							}
						case i%64 == 16+w: // and returned at once
							if r, err := l.Reserve(ctx, keys[k], 1, 0); err != nil || r.Allowed && r.Cancel(ctx) != nil {
								t.Error(err)
							}
						case i%128 == 48+w:
							if err := l.SetQuota(c.quotas[i/128%len(c.quotas)]); err != nil {
								t.Error(err)
							}
						case i%256 == 80+w:
							m.Sweep()
							if _, _, err := m.Snapshot(&bytes.Buffer{}); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			for k := range keys {
				for d, _ := l.Allow(ctx, keys[k]); d.Allowed; d, _ = l.Allow(ctx, keys[k]) {
					passed[k].Add(1)
				}
				if n := passed[k].Load(); n != burst {
					t.Errorf("%q: %d passed of %d", keys[k], n, burst)
				}
			}
		})
	}
}

func stopped() time.Duration { return 1000 * time.Hour }

// While someone holds the state of a key, no one takes from its word.
func TestALentWordIsGoneWhileItIsSettled(t *testing.T) {
	m, err := NewMemory(MemoryConfig{Clock: stopped})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(m, "limit", rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	take := func() bool {
		var d rules.Decision
		return l.quick("key", 1, &d) && d.Allowed
	}
	if d, err := l.Allow(t.Context(), "key"); err != nil || !d.Allowed || !take() {
		t.Fatalf("the first: %+v, %v", d, err)
	}
	kept := &m.findNode("limit", "key").kept
	kept.mu.Lock()
	kept.settle()
	if take() {
		t.Error("a word was taken from that had been settled")
	}
	kept.lend()
	kept.mu.Unlock()
	if !take() {
		t.Error("a word that is lent again takes a lock")
	}
	if d, err := l.Peek(t.Context(), "key", 1); err != nil || d.Remaining != 7 {
		t.Errorf("left: %+v, %v", d, err)
	}
}

// A key whose quota has changed lends its word again once the quota stays the same. A snapshot in
// between includes the key.
func TestAKeyIsRenewed(t *testing.T) {
	m, err := NewMemory(MemoryConfig{Clock: stopped})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(m, "limit", rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 100})
	if err != nil {
		t.Fatal(err)
	}
	left := int64(100)
	allow := func(times int) {
		t.Helper()
		for range times {
			left--
			if d, err := l.Allow(t.Context(), "key"); err != nil || d.Remaining != left {
				t.Fatalf("%+v, %v, want %d left", d, err, left)
			}
		}
	}
	allow(3)
	if err := l.SetQuota(rules.Quota{Rate: rules.Rate{N: 2, Per: time.Hour}, Burst: 100}); err != nil {
		t.Fatal(err)
	}
	old := m.findNode("limit", "key")
	allow(calmEnough + 2)
	var d rules.Decision
	if left--; !l.quick("key", 1, &d) || d.Remaining != left {
		t.Errorf("still with a lock, or not what was left: %+v, want %d", d, left)
	}
	s := &snapshotWriter{w: bufio.NewWriter(io.Discard)}
	if s.writeKey(m, old); s.err != nil || s.counts.states != 1 {
		t.Errorf("a snapshot that is at a key while that is renewed: %+v, %v", s.counts, s.err)
	}
	if got := m.Stats(); got.Keys != 1 {
		t.Errorf("%+v", got)
	}
}

// When the clock is set back, permits taken without a lock still have the time of their take.
func TestTheClockOfQuickTakesIsKnown(t *testing.T) {
	now := stopped()
	m, err := NewMemory(MemoryConfig{Clock: func() time.Duration { return now }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(m, "limit", rules.Quota{Rate: rules.Rate{N: 1, Per: time.Minute}, Burst: 10})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if d, err := l.AllowN(t.Context(), "key", 3); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		now += 10 * time.Second
	}
	now -= 5 * time.Hour // another clock: as many permits are missing as before
	if d, err := l.Peek(t.Context(), "key", 1); err != nil || d.ResetAfter != 6*time.Minute-10*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
}
