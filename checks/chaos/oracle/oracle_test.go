package oracle

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const ms = time.Millisecond

func bucket(rate, burst float64) Quota { return Quota{Family: "bucket", Rate: rate, Burst: burst} }

// ideal is a token bucket that is asked at given instants and whose burst and rate may change.
// Its missing permits are never clamped.
type ideal struct {
	missing float64
	last    time.Duration
}

func (b *ideal) take(now time.Duration, q Quota) bool {
	b.missing = max(0, b.missing-q.Rate*(now-b.last).Seconds())
	b.last = now
	if b.missing+1 > q.Burst {
		return false
	}
	b.missing++
	return true
}

// The history of an ideal bucket is never judged wrong, whatever the delays of requests and
// answers and however quotas roll out.
func TestLimitAcceptsIdealHistories(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		quotas := []Quota{bucket(1, 10), bucket(5, 3), bucket(0.2, 12)}
		l := &KeyLimit{Key: "k"}
		held := make([]Quota, 3)
		for i := range held {
			held[i] = quotas[rng.IntN(len(quotas))]
			l.Hold(string(rune('a'+i)), held[i], 0, 0)
		}
		var b ideal
		now := time.Duration(0)
		for range 400 {
			now += time.Duration(rng.IntN(100)) * ms
			i := rng.IntN(len(held))
			if rng.IntN(20) == 0 {
				held[i] = quotas[rng.IntN(len(quotas))]
				l.Hold(string(rune('a'+i)), held[i], now-time.Duration(rng.IntN(50))*ms, now+time.Duration(rng.IntN(50))*ms)
			}
			if b.take(now, held[i]) {
				l.Admit(now-time.Duration(rng.IntN(500))*ms, now+time.Duration(rng.IntN(500))*ms)
			}
			if rng.IntN(30) == 0 {
				if v := l.Check(now); v != nil {
					t.Fatalf("seed %d: %v", seed, v)
				}
			}
		}
		if v := l.Check(now + time.Minute); v != nil {
			t.Fatalf("seed %d: %v", seed, v)
		}
	}
}

func TestLimitFindsTooMany(t *testing.T) {
	for _, test := range []struct {
		name    string
		prepare func(*KeyLimit)
		admit   int           // one each 10 ms
		sent    time.Duration // time from sending to serving
		want    string        // empty: no violation
	}{
		{"as many as the burst", func(*KeyLimit) {}, 10, 0, ""},
		{"one more", func(*KeyLimit) {}, 11, 0, "11 admitted from 0.000s to 0.100s (0.100s); the quotas in force allow 10.0"},
		{"one more, and it may have been before the window", func(*KeyLimit) {}, 11, 20 * time.Second, ""},
		{"two quotas of a family: the larger one", func(l *KeyLimit) { l.Hold("b", bucket(0.1, 12), 0, 0) }, 13, 0, "13 admitted"},
		{"two families: their sum", func(l *KeyLimit) { l.Hold("b", Window("log", 10, time.Minute), 0, 0) }, 30, 0, ""},
		{"state was lost", func(l *KeyLimit) { l.AllowLoss(90*ms, 0)(100 * ms) }, 20, 0, ""},
		{"state was lost, one more", func(l *KeyLimit) { l.AllowLoss(90*ms, 0)(100 * ms) }, 21, 0, "21 admitted"},
		{"the state of ten seconds was lost", func(l *KeyLimit) { l.AllowLoss(0, 10*time.Second)(time.Second) }, 21, 0, ""},
		{"the state of ten seconds was lost, one more", func(l *KeyLimit) { l.AllowLoss(0, 10*time.Second)(time.Second) }, 22, 0, "22 admitted"},
		{"some decided apart", func(l *KeyLimit) { l.AllowApart(0, 100)(time.Second) }, 11, 0, ""},
		{"some decided apart, one more", func(l *KeyLimit) { l.AllowApart(0, 100)(time.Second) }, 12, 0, "12 admitted"},
		{"some decided apart for half of the time", func(l *KeyLimit) { l.AllowApart(0, 100)(50 * ms) }, 11, 0, "11 admitted"},
		{"state was lost later", func(l *KeyLimit) { l.AllowLoss(time.Hour, 0)(time.Hour) }, 11, 0, "11 admitted"},
		{"decided by parts", func(l *KeyLimit) { l.AllowParts(0, 3)(time.Second) }, 23, 0, ""},
		{"decided by parts, one more", func(l *KeyLimit) { l.AllowParts(0, 3)(time.Second) }, 24, 0, "24 admitted"},
		{"two outages allow no more", func(l *KeyLimit) { l.AllowParts(0, 3)(50 * ms); l.AllowParts(60*ms, 3)(time.Second) }, 24, 0, "24 admitted"},
		{"an outage that goes on", func(l *KeyLimit) { l.AllowParts(0, 3) }, 23, 0, ""},
		{"a fresh holder besides", func(l *KeyLimit) { l.AllowParts(0, 3); l.AllowFresh(50 * ms)(time.Second) }, 33, 0, ""},
		{"a quota that was in force long ago", func(l *KeyLimit) {
			l.Hold("a", bucket(0.1, 1000), -time.Hour, -time.Hour)
			l.Hold("a", bucket(0.1, 10), -time.Minute, -time.Minute)
		}, 11, 0, "11 admitted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &KeyLimit{Key: "k"}
			l.Hold("a", bucket(0.1, 10), 0, 0)
			test.prepare(l)
			for i := range test.admit {
				served := time.Duration(i) * 10 * ms
				l.Admit(served-test.sent, served)
			}
			v := l.Check(time.Minute)
			if got := v != nil; got != (test.want != "") || got && !strings.Contains(v.String(), test.want) {
				t.Errorf("got %v, want %q", v, test.want)
			}
		})
	}
}

// A bucket that grants a twentieth too much is found within the horizon.
func TestLimitFindsDrift(t *testing.T) {
	l := &KeyLimit{Key: "k"}
	l.Hold("a", bucket(10, 5), 0, 0)
	for i := range 1200 {
		at := time.Duration(float64(i) / 10.5 * float64(time.Second))
		l.Admit(at-5*ms, at+5*ms)
		if i%20 == 0 && l.Check(at) != nil {
			return
		}
	}
	t.Error("no violation")
}

func TestLimitForgets(t *testing.T) {
	l := &KeyLimit{Key: "k"}
	l.Hold("a", bucket(10, 5), 0, 0)
	for i := range 20_000 {
		at := time.Duration(i) * 110 * ms
		l.Admit(at, at)
		if i%100 == 0 {
			if v := l.Check(at); v != nil {
				t.Fatal(v)
			}
			l.Hold("a", bucket(10, 5), at, at)
			l.AllowLoss(at, 0)(at)
		}
	}
	if n := len(l.admitted); n > 1500 {
		t.Errorf("%d admissions are kept", n)
	}
	if len(l.terms) > 20 || len(l.extras) > 20 {
		t.Errorf("%d terms and %d extras are kept", len(l.terms), len(l.extras))
	}
}

func TestHot(t *testing.T) {
	var stalls Stalls
	h := &Enforcement{Key: "k", Process: "api-1", Deadline: 3 * time.Second, Enough: 30}
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	h.Excuse(at(1))
	for i := range 100 {
		h.Passed(at(1 + float64(i)/50))
	}
	if v := h.Check(at(3.9), &stalls); v != nil {
		t.Errorf("before the deadline: %v", v)
	}
	h.Refused(at(3.95))
	if v := h.Check(at(6), &stalls); v != nil {
		t.Errorf("it was refused: %v", v)
	}
	for i := range 100 {
		h.Passed(at(4 + float64(i)/50))
	}
	stalls.Add(Span{at(5), at(5.5)})
	if v := h.Check(at(8), &stalls); v != nil {
		t.Errorf("the machine stood still: %v", v)
	}
	if v := h.Check(at(8.6), &stalls); v != nil {
		t.Errorf("it may yet be excused: %v", v)
	}
	if v := h.Check(at(9.6), &stalls); v == nil {
		t.Error("unlimited for long, no violation")
	}
	if v := h.Check(at(10), &stalls); v != nil {
		t.Errorf("told twice: %v", v)
	}
	h.Excuse(at(10))
	if v := h.Check(at(20), &stalls); v != nil {
		t.Errorf("nobody asked: %v", v)
	}
}

func TestDecider(t *testing.T) {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for _, test := range []struct {
		name        string
		ask, let    float64 // per second
		excused     float64
		stall       float64 // length of a stall in the midst
		gap         bool
		wantFinding bool
	}{
		{"Redis decides", 16, 10, 0, 0, false, false},
		{"a third", 16, 3.34, 0, 0, false, true},
		{"a third, just after a fault", 16, 3.34, 9, 0, false, false},
		{"too few were asked", 11, 3, 0, 0, false, false},
		{"a third on a machine that stood still", 16, 3.34, 0, 1, false, false},
		{"a third after a pause", 16, 3.34, 0, 0, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stalls Stalls
			o := &Decider{Key: "k", Process: "api-1", Rate: 10, Deadline: 3 * time.Second, Window: 3 * time.Second}
			o.Excuse(at(test.excused))
			let := 0.0
			for i := range int(14 * test.ask) {
				sent := at(float64(i) / test.ask)
				if test.gap && sent > at(10) && sent < at(11) {
					continue
				}
				admitted := float64(i)/test.ask*test.let > let
				if admitted {
					let++
				}
				o.Answered(sent, admitted)
			}
			if test.stall > 0 {
				stalls.Add(Span{at(11), at(11 + test.stall)})
			}
			v := o.Check(at(14), &stalls)
			if (v != nil) != test.wantFinding {
				t.Errorf("got %v, want a finding: %v", v, test.wantFinding)
			}
		})
	}
}

func TestCap(t *testing.T) {
	c := &Cap{Subject: "lines", Most: 100, Window: 10 * time.Second}
	for i := range 60 {
		if v := c.Sample(time.Duration(i)*time.Second, float64(9*i)); v != nil {
			t.Fatal(v)
		}
	}
	if v := c.Sample(60*time.Second, 9*59+101); v == nil || !strings.Contains(v.Text, "at most 100 within 10s") {
		t.Errorf("a burst of lines: %v", v)
	}
	if v := c.Sample(61*time.Second, 9*59+150); v != nil {
		t.Errorf("told twice within a window: %v", v)
	}
}

func TestLevel(t *testing.T) {
	var stalls Stalls
	l := &Level{Invariant: I4, Subject: "descriptors", Most: 100, Deadline: 3 * time.Second}
	l.Excuse(10 * time.Second)
	for _, test := range []struct {
		at   time.Duration
		v    float64
		want bool
	}{{5, 500, false}, {12, 500, false}, {14, 50, false}, {15, 101, true}, {16, 101, false}} {
		if v := l.Sample(test.at*time.Second, test.v, &stalls); (v != nil) != test.want {
			t.Errorf("%v at %ds: %v", test.v, test.at, v)
		}
	}
}

func TestNamed(t *testing.T) {
	const s = time.Second
	var stalls Stalls
	n := &NamedTrouble{Enough: 2, Most: 10 * s}
	n.Sample("a", true)
	n.Sample("b", true)
	if n.Excuses(5*s, &stalls) {
		t.Error("what is named without a fault is excused")
	}
	n.Fault(20 * s)
	for _, test := range []struct {
		at   time.Duration
		b    bool
		want bool
	}{{21, true, true}, {22, false, false}, {29, true, true}, {30, true, false}} {
		n.Sample("b", test.b)
		if got := n.Excuses(test.at*s, &stalls); got != test.want {
			t.Errorf("at %ds, named by b: %v: excused: %v", test.at, test.b, got)
		}
	}
	stalls.Add(Span{24 * s, 25 * s})
	if !n.Excuses(32*s, &stalls) {
		t.Error("a machine that stood still gets no more time")
	}
}
