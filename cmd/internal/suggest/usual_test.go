package suggest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
)

// mix writes a log of n requests, a hundred a second, whose values of q have these parts of the
// requests at all times. burst has half of them in a tenth of the log.
func mix(random *rand.Rand, n int, steady map[string]float64, burst string) []byte {
	names := make([]string, 0, len(steady))
	for name := range steady {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	from := random.IntN(n * 8 / 10)
	for i := range n {
		value, at := "v"+strconv.Itoa(int(1000*random.ExpFloat64())), random.Float64()
		for _, name := range names {
			if at -= steady[name]; at < 0 {
				value = name
				break
			}
		}
		if burst != "" && i >= from && i < from+n/10 && random.IntN(2) == 0 {
			value = burst
		}
		fmt.Fprintf(&b, `{"time":%.2f,"method":"GET","uri":%s}`+"\n", 1500000000+float64(i)/100, strconv.Quote("/a?q="+url.QueryEscape(value)))
	}
	return b.Bytes()
}

// In any mix, values that always have much of the traffic, or that mean none, are excepted. A
// burst is not, and is hot. The limit refuses as many requests as reported.
func TestUsualValuesAreExcepted(t *testing.T) {
	seeds := 6
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 1))
		steady := map[string]float64{noneWords[random.IntN(len(noneWords))]: 0.02 + random.Float64()/4}
		if random.IntN(2) == 0 {
			steady["tv & radio"] = 0.2 + random.Float64()/4
		}
		kept := keep(t, []string{"-"}, mix(random, 6000, steady, "concert"))
		r := find(t, kept, 10)
		if len(r.Params) != 1 || r.Params[0].Threshold == "" || r.Params[0].Hot == 0 {
			t.Fatalf("seed %d: %+v", seed, r.Params)
		}
		p := r.Params[0]
		if len(p.Usual) != len(steady) {
			t.Errorf("seed %d: %+v, want %v", seed, p.Usual, steady)
		}
		for _, u := range p.Usual {
			if share, ok := steady[u.Value]; !ok || u.Share < share/2 || u.Share > share*1.5 || u.None != isNone(u.Value) {
				t.Errorf("seed %d: %+v, want %v", seed, u, steady)
			}
		}
		rules := strings.Replace(r.Rules, ", on_limit: shadow", "", 1)
		for _, text := range []string{r.Rules, rules} {
			file, err := config.Parse("", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			hot, values := make(map[string]bool), 0
			summary, err := replay.Run(t.Context(), replay.Config{
				Rules: file.Rules, Log: kept, OnEvent: func(e replay.Event) { hot[e.Key] = true },
				OnKey: func(k replay.KeyReport) { values += int(min(k.Limited, 1)) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if summary.Limited != p.Refused || values != p.RefusedValues || r.Refused != p.Refused || p.Refused == 0 {
				t.Errorf("seed %d: %d refused of %d values, said %d of %d", seed, summary.Limited, values, p.Refused, p.RefusedValues)
			}
			if !hot["GET /a?q=concert"] {
				t.Errorf("seed %d: the burst is not hot: %v", seed, hot)
			}
		}
	}
}

// A parameter with a few values that have nearly all requests is an option, even with stray
// values among them.
func TestOptionWithStrayValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := find(t, keep(t, []string{"-"}, mix(random, 6000, map[string]float64{"up": 0.5, "down": 0.4}, "")), 10)
	if why := r.Params[0].Why; !strings.HasPrefix(why, "few values") || r.Rules != "" {
		t.Errorf("%q\n%s", why, r.Rules)
	}
}

// If a rule cannot or must not name a frequent value, values are compared with their own past.
// Then the frequent one is not hot, a rising one is, and the limit lets the usual traffic pass.
func TestUsualValueThatNoRuleNames(t *testing.T) {
	for _, value := range []string{"*", "a*b", "ann@shop.example", "\xff", strings.Repeat("long", 50)} {
		random := rand.New(rand.NewPCG(1, 3))
		kept := keep(t, []string{"-"}, mix(random, 6000, map[string]float64{value: 0.5, "-": 0.1}, "concert"))
		r := find(t, kept, 1)
		p := r.Params[0]
		if p.Jump != jumpFactor || len(p.Usual) != 1 || p.Usual[0].Value != "-" || p.Hot == 0 || strings.Contains(r.Rules, value) {
			t.Fatalf("%q: %+v\n%s", value, p, r.Rules)
		}
		file, err := config.Parse("", []byte(r.Rules))
		if err != nil {
			t.Fatal(err)
		}
		rule := &file.Rules.Rules[0]
		var requests []exact.TraceRequest
		if err := entriesOf(t, kept)(func(e *accesslog.Entry) {
			requests = append(requests, exact.TraceRequest{At: e.Time.UnixNano(), Method: e.Method, Target: strings.Clone(e.Target)})
		}); err != nil {
			t.Fatal(err)
		}
		sim := simulate(requests, rule)
		refused, values := refusedBy(requests, []*simulated{sim})
		if refused != p.Refused || values != p.RefusedValues {
			t.Errorf("%q: said to refuse %d requests of %d values, plain buckets refuse %d of %d", value, p.Refused, p.RefusedValues, refused, values)
		}
		if events := sim.events["q=concert"]; len(events) == 0 || len(sim.events) != p.Hot {
			t.Errorf("%q: %d keys were hot, want %d and the concert: %v", value, len(sim.events), p.Hot, events)
		}
		if rate := rule.Limit.Rate; rate.N < 25*int64(rate.Per/time.Second) {
			t.Errorf("%q: the limit is %v, the frequent value has some 50/s", value, rate)
		}
	}
}

// A parameter has no rule if none of its values is hot by the measure of the other parameters.
func TestParameterThatNothingHeats(t *testing.T) {
	var b bytes.Buffer
	random := rand.New(rand.NewPCG(1, 4))
	for i := range 6000 {
		q, p := "v"+strconv.Itoa(int(1000*random.ExpFloat64())), "w"+strconv.Itoa(int(300*random.ExpFloat64()))
		if i >= 3000 && i < 3600 && i%10 != 0 {
			q = "concert"
		}
		fmt.Fprintf(&b, `{"time":%.2f,"method":"GET","uri":"/a?q=%s&p=%s"}`+"\n", 1500000000+float64(i)/100, q, p)
	}
	r := find(t, keep(t, []string{"-"}, b.Bytes()), 1)
	for _, p := range r.Params {
		if proposed := p.Threshold != ""; proposed != (p.Name == "q") || proposed != (p.Hot > 0) || proposed == (p.Why != "") || proposed != strings.Contains(r.Rules, `by: ["`+p.Name+`"]`) {
			t.Errorf("%+v\n%s", p, r.Rules)
		}
	}
}

// A request with several values counts once, and equal values are equal in any spelling.
func TestShareOfRequests(t *testing.T) {
	var b bytes.Buffer
	for i := range 2000 {
		both := []string{"tv+set", "tv%20set"}[i%2]
		fmt.Fprintf(&b, `{"time":%.2f,"method":"GET","uri":"/a?q=%s&q=x%d&q=y%d"}`+"\n", 1500000000+float64(i)/100, both, i, i)
	}
	s, err := look(entriesOf(t, keep(t, []string{"-"}, b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	p := s.all[0].params["q"]
	usual := p.usual()
	if p.requests != 2000 || len(usual) != 1 || usual[0] != (Usual{Value: "tv set", Share: 1}) {
		t.Errorf("%d requests, %+v", p.requests, usual)
	}
}

func entriesOf(t *testing.T, kept *accesslog.Kept) reading {
	return func(f func(*accesslog.Entry)) error {
		for e, err := range kept.Entries(t.Context()) {
			if err != nil {
				return err
			}
			f(&e)
		}
		return nil
	}
}
