package limiter

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A bucket that gets another quota lacks as many tokens as before, to the nanosecond, whatever its
// burst.
func TestChanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) *gcra {
			interval := rapid.Int64Range(100, 1<<rapid.IntRange(7, 61).Draw(rt, name+" bits")).Draw(rt, name+" interval")
			burst := rapid.Int64Range(1, maxFill/interval).Draw(rt, name+" burst")
			g := &gcra{}
			if err := g.setRate(rules.Rate{N: 1, Per: time.Duration(interval)}, burst); err != nil {
				rt.Fatal(err)
			}
			return g
		}
		old, heir := draw("old"), draw("heir")
		at := rapid.Int64Range(0, maxNow).Draw(rt, "at")
		missing := rapid.Int64Range(0, old.fill+old.debt).Draw(rt, "missing")
		want := new(big.Int).Mul(big.NewInt(missing), big.NewInt(heir.interval))
		want.Div(want.Add(want, big.NewInt(old.interval-1)), big.NewInt(old.interval))
		if far := big.NewInt(maxFill + maxDebt); want.Cmp(far) > 0 {
			want = far
		}
		l := takeLine{word: at + missing}
		heir.convertLine(old, &l, at)
		if got := l.word - at; got != want.Int64() || l.mark() != at+missing {
			rt.Fatalf("missing %d at intervals %d, then %d: got %d, want %v; the line ends at %d", missing, old.interval, heir.interval, got, want, l.mark())
		}
		full := takeLine{word: rapid.Int64Range(0, at).Draw(rt, "full")}
		if was := full.word; func() bool { heir.convertLine(old, &full, at); return full.word != was }() {
			rt.Fatalf("full at %d, at %d: %d", was, at, full.word)
		}
	})
}

// A key that is not asked while the quota changes several times earns at each rate for as long as
// that rate held.
func TestKeysEarnAtEachRate(t *testing.T) {
	quota := func(n int64) *rules.Quota {
		return &rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: n, Per: time.Second}, Burst: 100}
	}
	k, err := NewKeys(quota(1), 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	key := []byte("key")
	k.Do(0, 1, key, Request{N: 100})
	for i, n := range []int64{2, 4} {
		if err := k.SetQuota(quota(n), time.Duration(i+1)*10*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	// 100 are missing at 0, 90 at 10 s, 70 at 20 s, 50 at 25 s.
	if r := k.Do(25*time.Second, 1, key, Request{Kind: Peek}); r.Remaining != 50 {
		t.Errorf("%+v, want 50 remaining", r)
	}
}

// A reservation that waits for longer than any debt does not count as a reset of the clock.
func TestReserveFarAhead(t *testing.T) {
	q := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}
	b, err := NewBucket(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	for i := range 1000 {
		r := b.Do(now, Request{Kind: Reserve, N: 1, Within: time.Hour})
		if want := time.Duration(i) * time.Second; !r.Allowed || r.Delay != want {
			t.Fatalf("reservation %d: %+v, want a delay of %v", i, r, want)
		}
	}
	if r := b.Do(now, Request{N: 1}); r.Allowed || r.RetryAfter != 1000*time.Second {
		t.Errorf("after them: %+v", r)
	}
	if r := b.Do(now, Request{Kind: Return, N: 1000}); r.Remaining != 1 || r.ResetAfter != 0 {
		t.Errorf("when all were given back: %+v", r)
	}
}
