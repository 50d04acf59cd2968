package limiter

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// A bucket that goes on with another quota lacks as many tokens as before, to the
// nanosecond, whatever its burst.
func TestChanged(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) *gcra {
			interval := rapid.Int64Range(100, 1<<rapid.IntRange(7, 61).Draw(rt, name+" bits")).Draw(rt, name+" interval")
			burst := rapid.Int64Range(1, maxFill/interval).Draw(rt, name+" burst")
			g := &gcra{}
			if err := g.set(rules.Rate{N: 1, Per: time.Duration(interval)}, burst); err != nil {
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
		l := line{word: at + missing}
		heir.changed(old, &l, at)
		if got := l.word - at; got != want.Int64() || l.mark() != at+missing {
			rt.Fatalf("missing %d at intervals %d, then %d: got %d, want %v; the line ends at %d", missing, old.interval, heir.interval, got, want, l.mark())
		}
		full := line{word: rapid.Int64Range(0, at).Draw(rt, "full")}
		if was := full.word; func() bool { heir.changed(old, &full, at); return full.word != was }() {
			rt.Fatalf("full at %d, at %d: %d", was, at, full.word)
		}
	})
}

// A bucket that nobody asked while its quota changed several times earns at each rate
// while that held.
func TestDescend(t *testing.T) {
	const sec = int64(time.Second)
	rates := []rules.Rate{{N: 1, Per: time.Second}, {N: 2, Per: time.Second}, {N: 4, Per: time.Second}}
	var gs []*reckoning
	for i, r := range rates {
		g := &reckoning{}
		if err := g.set(r, 100); err != nil {
			t.Fatal(err)
		}
		if gs = append(gs, g); i > 0 {
			gs[i-1].succeed(g, int64(i)*10*sec)
		}
	}
	// 100 are missing at 0, 90 at 10 s, 70 at 20 s, which 4 a second earn in 17.5 s.
	l := line{word: 100 * sec}
	gs[0].descend(gs[2], &l, nil)
	if got, want := l.word, 20*sec+17_500*int64(time.Millisecond); got != want {
		t.Errorf("full at %v, want %v", time.Duration(got), time.Duration(want))
	}
}

// A reservation that waits for longer than any debt is no reset of the clock.
func TestReserveFarAhead(t *testing.T) {
	q := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}
	b, err := newBucketed(q, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Hour
	for i := range 1000 {
		r := b.Do(now, Ask{Kind: Reserve, N: 1, Within: time.Hour})
		if want := time.Duration(i) * time.Second; !r.Allowed || r.Delay != want {
			t.Fatalf("reservation %d: %+v, want a delay of %v", i, r, want)
		}
	}
	if r := b.Do(now, Ask{N: 1}); r.Allowed || r.RetryAfter != 1000*time.Second {
		t.Errorf("after them: %+v", r)
	}
	if r := b.Do(now, Ask{Kind: Return, N: 1000}); r.Remaining != 1 || r.ResetAfter != 0 {
		t.Errorf("when all were given back: %+v", r)
	}
}
