package limiter

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// No number of a key's recorded debt is ever less than the key owes, whatever is evicted and when.
// This holds through floods of more keys than a generation of the filter takes, and on clocks that
// are set back.
func TestDebtsAreNeverLess(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, now := newDebts(64), int64(1e18)
		d.last = now
		owed := map[uint64]debt{}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			step := rapid.SampledFrom([]int64{0, int64(time.Second), int64(30 * time.Minute), -int64(time.Minute), -int64(100 * time.Hour)}).Draw(rt, "step")
			now += step
			by := now - d.last
			d.tick(now)
			if by < -maxBack {
				for key, x := range owed {
					for _, i := range []int{debtUntil, debtAt, debtLock} {
						x[i] += by
					}
					owed[key] = x
				}
			}
			for range rapid.SampledFrom([]int{1, 50, 1500}).Draw(rt, "keys") {
				key := random.Uint64N(4000)
				x := debt{debtUntil: now + 1 + random.Int64N(int64(time.Hour))}
				x[debtAt], x[debtCount], x[debtLock] = now-random.Int64N(1e9), random.Int64N(100), x[debtUntil]
				d.add(mixed(key, 0), bucketFamily, random.IntN(2) == 0, &x, now)
				owed[key] = x
			}
			for key, x := range owed {
				if x[debtUntil] <= d.last {
					delete(owed, key) // it may be forgotten, and starts at the floor
					continue
				}
				got, _ := d.findDebt(mixed(key, 0), now)
				for _, i := range []int{debtUntil, debtAt, debtCount, debtLock} {
					if got[i] < x[i] {
						rt.Fatalf("key %d owes %v, and is said to owe %v", key, x, got)
					}
				}
			}
		}
	})
}

// TestDebtsOfStrangers checks the chances, stated in LIMITS.md, that a new key or a key of the
// flood is charged more than it owes. The limit is 5 an hour, and the table has room for 65,536
// keys.
func TestDebtsOfStrangers(t *testing.T) {
	const scale = 8 // applies to both places and names
	const places = 1 << 16 / scale
	for _, c := range []struct {
		names     int
		each      int64
		newcomers float64 // the largest share of keys new to the table that are charged anything
		returning float64 // the largest share of keys with one permit taken in the flood that are charged another
	}{
		{67_000, 1, 1e-5, 1e-5},
		{67_000, 5, 1e-5, 1e-5},
		{1_000_000, 1, 0.01, 0.02},
		{1_000_000, 5, 0.01, 0.01},
	} {
		k, err := NewKeyed(rules.Rate{N: 5, Per: time.Hour}, 5, places)
		if err != nil {
			t.Fatal(err)
		}
		const known = 1000 // keys that take one permit each before the flood
		now := 1000 * time.Hour
		key := func(kind byte, i int) []byte { return []byte{kind, byte(i), byte(i >> 8), byte(i >> 16)} }
		do := func(kind byte, i int, ask Request) Result {
			name := key(kind, i)
			return k.Do(now, rules.Hash(name), name, ask)
		}
		for i := range known {
			do('k', i, Request{N: 1})
		}
		for i := range c.names / scale {
			do('s', i, Request{Kind: AtMost, N: c.each})
		}
		var charged, more, refused int
		const asked = 20_000
		for i := range asked {
			switch r := do('n', i, Request{Kind: Peek, N: 1}); {
			case !r.Allowed:
				refused++
				fallthrough
			case r.Remaining < 5:
				charged++
			}
		}
		for i := range known {
			if r := do('k', i, Request{Kind: Peek, N: 1}); r.Remaining < 4 {
				more++
			} else if r.Remaining > 4 {
				t.Fatalf("a key that took 1 of 5 has %d left", r.Remaining)
			}
		}
		for i := range 500 {
			if r := do('s', i, Request{Kind: Peek, N: 6 - c.each}); r.Allowed {
				t.Fatalf("%d names, %d each: one of them has more than it left", c.names, c.each)
			}
		}
		t.Logf("%d names, %d each: of %d others %d are charged, %d refused; of %d that came before %d are charged more; %+v",
			c.names, c.each, asked, charged, refused, known, more, k.Stats())
		if got := float64(charged) / asked; got > c.newcomers {
			t.Errorf("%d names, %d each: %v of those that never came are charged", c.names, c.each, got)
		}
		if got := float64(more) / known; got > c.returning {
			t.Errorf("%d names, %d each: %v of those that came before are charged more than they took", c.names, c.each, got)
		}
	}
}

// A debt is paid after the time that was left of it, even if the clock was set back by hours.
func TestDebtsAreAsLongAfterAReset(t *testing.T) {
	const hour = int64(time.Hour)
	d := newDebts(64)
	now := 1000 * hour
	d.tick(now)
	d.add(1, bucketFamily, false, &debt{debtUntil: now + hour, debtAt: now, debtCount: 3, debtLock: now + hour}, now)
	now -= 100 * hour
	d.tick(now)
	if got, found := d.findDebt(1, now+hour-1); !found || got[debtUntil] != now+hour || got[debtLock] != now+hour || got[debtAt] != now {
		t.Errorf("at %d: %v, %v", now, got, found)
	}
	if got, found := d.findDebt(1, now+hour); found {
		t.Errorf("an hour later: %v", got)
	}
}

// Each row has other collisions, so a key is rarely charged a stranger's debt.
func TestSketchTakesTheLeastRow(t *testing.T) {
	const keys = 1024
	s := newSketch(keys)
	for i := range uint64(keys / 16) {
		s.add(mixed(i, 0), &debt{debtUntil: int64(1000 + i)}, 1)
	}
	wrong := 0
	for i := range uint64(keys / 16) {
		if got := s.upperBound(mixed(i, 0)); got[debtUntil] != int64(1000+i) {
			wrong++
		}
	}
	if wrong > 1 {
		t.Errorf("%d of %d owe what another key does", wrong, keys/16)
	}
}

// A bucket's debt is paid at the rate of its own family, however fast another family's rate
// becomes. A slower rate may be used.
func TestDebtsKeepTheRateOfTheirFamily(t *testing.T) {
	const now, interval = int64(1000 * time.Hour), int64(time.Second)
	owes := func(n int64) *debt {
		return &debt{debtUntil: now + n*interval, debtAt: now + n*interval, debtCount: speedOf(interval)}
	}
	for name, test := range map[string]struct {
		add     func(d *debts)
		rescale family
		to      int64 // the interval
		until   int64 // time at which the debt of key 1 is paid
	}{
		"its own, faster":            {func(*debts) {}, leakyFamily, interval / 10, now + interval/10},
		"its own, slower":            {func(*debts) {}, leakyFamily, 2 * interval, now + 2*interval},
		"another, faster":            {func(*debts) {}, bucketFamily, interval / 10, now + interval},
		"another with debts, faster": {func(d *debts) { d.add(2, bucketFamily, true, owes(3), now) }, bucketFamily, interval / 10, now + interval},
		"its own among others":       {func(d *debts) { d.add(2, bucketFamily, true, owes(3), now) }, leakyFamily, interval / 10, now + interval},
		"its own again":              {func(d *debts) { d.add(2, bucketFamily, true, owes(3), now); d.add(3, leakyFamily, true, owes(1), now) }, leakyFamily, interval / 10, now + interval},
	} {
		d := newDebts(1 << 10)
		d.tick(now)
		d.add(1, leakyFamily, true, owes(1), now)
		test.add(d)
		d.rescale(test.rescale, test.to, now)
		if got, found := d.findDebt(1, now); !found || got[debtUntil] != test.until {
			t.Errorf("%s: paid %v later, want %v", name, time.Duration(got[debtUntil]-now), time.Duration(test.until-now))
		}
	}
}
