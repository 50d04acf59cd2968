package admitted

import (
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// The sum over all instances is compared with one limit, or with one for each instance. It exceeds
// the bound only if the limit did not hold, wherever in their spans the instances admitted.
func TestGauges(t *testing.T) {
	hot := published.Hot{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Limit: rules.Rate{N: 600, Per: time.Minute}, Burst: 20, Scope: rules.ScopeFleet}
	id, now := limiter.KeyID([]byte(hot.Key.String())), time.Now()
	member := func(name string, ago time.Duration, n int64) published.Member {
		return published.Member{Name: name, Role: published.RoleInstance, Heard: now.Add(-ago), Admitted: []published.Admitted{{ID: id, N: n, Span: 10 * time.Second}}}
	}
	one, two := member("a", 0, 60), member("b", 1500*time.Millisecond, 40)
	aggregator, quiet := published.Member{Name: "x", Role: published.RoleAggregator}, published.Member{Name: "c", Role: published.RoleInstance}
	cut := published.Member{Name: "d", Role: published.RoleInstance, MoreAdmitted: true}
	for name, c := range map[string]struct {
		members []published.Member
		sending []string
		scope   rules.Scope
		want    Gauge
	}{
		"no one reports": {[]published.Member{aggregator}, nil, rules.ScopeFleet, Gauge{}},
		"one":            {[]published.Member{aggregator, one}, []string{"a"}, rules.ScopeFleet, Gauge{PerSecond: 6, Limits: 1, OfBound: 60 / 125.}},
		"two":            {[]published.Member{one, two, quiet}, []string{"a", "c"}, rules.ScopeShare, Gauge{PerSecond: 10, Limits: 1, OfBound: 100 / 140.}},
		"each":           {[]published.Member{one, two, quiet}, nil, "", Gauge{PerSecond: 10, Limits: 3, OfBound: 100 / 420.}},
		"exceeded":       {[]published.Member{one, member("b", 1500*time.Millisecond, 150)}, nil, rules.ScopeExact, Gauge{PerSecond: 21, Limits: 1, OfBound: 210 / 140.}},
		"crashed":        {[]published.Member{one, member("b", 5*time.Second, 100)}, nil, rules.ScopeFleet, Gauge{PerSecond: 6, Limits: 1, OfBound: 160 / 175.}},
		"silent":         {[]published.Member{one}, []string{"a", "other"}, rules.ScopeFleet, Gauge{PerSecond: 6, Limits: 1, AtLeast: true, OfBound: 60 / 125.}},
		"cut":            {[]published.Member{one, cut}, nil, rules.ScopeFleet, Gauge{PerSecond: 6, Limits: 1, AtLeast: true, OfBound: 60 / 125.}},
		"nothing":        {[]published.Member{quiet}, nil, rules.ScopeFleet, Gauge{Limits: 1}},
	} {
		var sending []published.Instance
		for _, name := range c.sending {
			sending = append(sending, published.Instance{Name: name})
		}
		hot.Scope = c.scope
		got := New(c.members, sending).Gauge(&hot)
		if c.want.Known() {
			c.want.Limit = hot.Limit
		}
		if math.Abs(got.OfBound-c.want.OfBound) > 1e-9 || math.Abs(got.PerSecond-c.want.PerSecond) > 1e-9 {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		got.OfBound, got.PerSecond = c.want.OfBound, c.want.PerSecond
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	// What on_hot answers is added up as well, also of a key without a limit, and with the reason
	// that most requests went alone for.
	shares := func(name string, ago time.Duration, o published.OnHotCounts) published.Member {
		m := member(name, ago, 10)
		m.Admitted[0].OnHot = o
		return m
	}
	members := []published.Member{
		shares("a", 0, published.OnHotCounts{Stored: 300, Joined: 20, Alone: 30, AloneFor: "private"}), shares("b", 0, published.OnHotCounts{Stored: 100, Alone: 40, AloneFor: "cookie"}),
		shares("crashed", 5*time.Second, published.OnHotCounts{Stored: 9999, Alone: 9999, AloneFor: "status"}),
	}
	listed := hot
	listed.Limit = rules.Rate{}
	for _, h := range []*published.Hot{&hot, &listed} {
		if got, want := New(members, nil).Gauge(h).OnHot, (OnHot{Stored: 40, Joined: 2, Alone: 7, AloneFor: "cookie"}); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	watched := hot
	watched.Limit = rules.Rate{}
	if g := New([]published.Member{one}, nil).Gauge(&watched); g.Known() || (*Admissions)(nil).Gauge(&hot).Known() {
		t.Errorf("%+v", g)
	}
}
