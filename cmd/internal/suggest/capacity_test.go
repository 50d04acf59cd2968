package suggest

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/capacity"
	"github.com/hotparam/hotparam/rules"
)

// timedLog has ten minutes of a route that serves 10 and 50 requests a second in 5 ms, and is slow at
// 80. Every third request has no duration. Another route has too few requests.
func timedLog() string {
	var b strings.Builder
	for window := range 61 {
		perSecond, took := 10, 0.005
		switch {
		case window%3 == 1:
			perSecond = 50
		case window == 30:
			perSecond, took = 80, 0.02
		}
		for i := range 10 * perSecond {
			at := 1.5e9 + float64(10*window) + float64(i)/float64(perSecond)
			fmt.Fprintf(&b, `{"time":%.3f,"method":"GET","uri":"/orders?filter=%d&user=%d"`, at, i%60, i%7)
			if i%3 > 0 {
				fmt.Fprintf(&b, `,"duration":%v`, took)
			}
			b.WriteString("}\n")
			if i == 0 {
				fmt.Fprintf(&b, `{"time":%.3f,"method":"GET","uri":"/seldom?q=1","duration":1}`+"\n", at)
			}
		}
	}
	return b.String()
}

func TestCapacities(t *testing.T) {
	r := find(t, keep(t, []string{"-"}, []byte(timedLog())), 1)
	if len(r.Capacities) != 2 {
		t.Fatalf("%d routes", len(r.Capacities))
	}
	c := r.Capacities[0]
	if c.Route != "GET /orders" || math.Abs(c.Usual-0.005) > 1e-6 || c.Served != 50 || c.SlowFrom != 80 || c.Slow != 1 || c.Windows != 60 || c.Limit != "50/s" {
		t.Errorf("%+v", c)
	}
	if seldom := r.Capacities[1]; seldom.Route != "GET /seldom" || seldom.Limit != "" {
		t.Errorf("%+v", seldom)
	}
	file, err := config.Parse("", []byte(r.CapacityRules))
	if err != nil {
		t.Fatalf("%v\n%s", err, r.CapacityRules)
	}
	if n := len(file.Rules.Rules); n != 2 {
		t.Fatalf("%d rules:\n%s", n, r.CapacityRules)
	}
	limit, cost := &file.Rules.Rules[0], &file.Rules.Rules[1]
	if q := limit.Limit; limit.ID != "orders-capacity" || len(limit.Hot) > 0 || q.Rate.String() != "50/s" || q.Scope != rules.ScopeFleet || q.Mode != rules.ModeShadow {
		t.Errorf("%+v %+v", limit, q)
	}
	if !cost.HasCost() || cost.Limit.Concurrency != rules.AutoConcurrency || cost.Limit.Mode != rules.ModeShadow || cost.By.Kind != rules.ByCombinations || len(cost.By.Names) != 2 {
		t.Errorf("%+v", cost)
	}
}

// The rules can be used together with those that are proposed for hot keys.
func TestCapacityRulesHaveTheirOwnIDs(t *testing.T) {
	all := []*Capacity{
		{Route: "GET /a", Seen: seenAt(5), params: []string{"capacity", "q", "r", "s", "t"}},
		{Route: "GET /a/{$}", Seen: seenAt(412.3), params: []string{"path:id"}},
		{Route: "shop.Search/Find", Seen: seenAt(0.001)},
		{Route: "GET /{", Seen: seenAt(100)},
	}
	text := CapacityRules(all, []string{"a-capacity"})
	file, err := config.Parse("", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var got []string
	for i := range file.Rules.Rules {
		r := &file.Rules.Rules[i]
		got = append(got, r.ID+" "+r.Match.Route.String())
	}
	want := "a-capacity-2 GET /a, a-cost GET /a, a-capacity-3 GET /a/{$}, capacity shop.Search/Find"
	if strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if a, b, c := all[0].Limit, all[1].Limit, all[2].Limit; a != "300/1m" || b != "413/s" || c != "1/1m" || all[3].Limit != "" {
		t.Errorf("limits %q %q %q", a, b, c)
	}
}

func seenAt(served float64) capacity.Seen {
	return capacity.Seen{Usual: 0.01, Served: served, Windows: 100, Requests: 1000}
}

func TestCapacityWords(t *testing.T) {
	for _, test := range []struct {
		seen capacity.Seen
		want string
	}{
		{seenAt(1), "at that speed, in a window of 10 s."},
		{seenAt(3000), "Up to 3,000/s were served at that speed, in a window of 10 s. It was never slow, so it may serve more."},
		{capacity.Seen{Usual: 0.01234, Served: 5.25, SlowFrom: 6, Slow: 1, Windows: 2}, "usually takes 12ms. Up to 5.2/s were served at that speed, in a window of 10 s. It was slow from 6.0/s on (1 of 2 windows)."},
		{capacity.Seen{Served: 9, SlowFrom: 6, Slow: 1, Windows: 2}, "It was slow at 6.0/s already (1 of 2 windows): bursts, or something other"},
	} {
		if got := (&Capacity{Seen: test.seen}).Words(); !strings.Contains(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// A log without durations says nothing of what routes serve.
func TestNoCapacityWithoutDurations(t *testing.T) {
	r := find(t, keep(t, []string{"-"}, []byte(`{"time":1,"method":"GET","uri":"/a?q=1"}`)), 1)
	if len(r.Capacities) != 0 || r.CapacityRules != "" {
		t.Errorf("%+v %q", r.Capacities, r.CapacityRules)
	}
}
