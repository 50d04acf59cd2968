package suggest

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// The reported refusals are those of plain token buckets that share no code with the limits: one
// for each key, which is asked while the exact count has the key hot.
func TestRefusedAgreesWithPlainBuckets(t *testing.T) {
	demo := filepath.Join(t.TempDir(), "edgar.access.log.zst")
	if err := os.WriteFile(demo, data.EDGAR, 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "..", "..", "shared", "data")
	for _, c := range []struct {
		trace  string
		perDay []float64
	}{
		{demo, []float64{10, 100}},
		{filepath.Join(dir, "semicomplete-apache_logs.log.zst"), []float64{1, 1000}},
		{filepath.Join(dir, "scan-acunetix.log.zst"), []float64{10, 200}},
		{filepath.Join(dir, "dns-2018-03-24.access.jsonl.zst"), []float64{20}},
	} {
		if testing.Short() && c.trace != demo {
			continue
		}
		t.Run(filepath.Base(c.trace), func(t *testing.T) {
			if _, err := os.Stat(c.trace); err != nil {
				t.Skip("the folder shared/data beside the repository, with the real logs, is not there")
			}
			requests := traceOf(t, c.trace)
			kept := keep(t, []string{c.trace}, nil)
			for _, perDay := range c.perDay {
				r := find(t, kept, perDay)
				file, err := config.Parse("", []byte(r.Rules))
				if err != nil {
					t.Fatalf("%v\n%s", err, r.Rules)
				}
				var sims []*simulated
				for i := range file.Rules.Rules {
					rule := &file.Rules.Rules[i]
					sim := simulate(requests, rule)
					sims = append(sims, sim)
					p := r.Params[slices.IndexFunc(r.Params, func(p *Param) bool { return p.rule == rule.ID })]
					refused, values := refusedBy(requests, []*simulated{sim})
					if refused != p.Refused || values != p.RefusedValues {
						t.Errorf("%v a day, %s: said to refuse %d requests of %d values, plain buckets refuse %d of %d", perDay, rule.ID, p.Refused, p.RefusedValues, refused, values)
					}
					t.Logf("%v a day, %s: %d of %d values", perDay, rule.ID, refused, values)
				}
				if refused, _ := refusedBy(requests, sims); refused != r.Refused {
					t.Errorf("%v a day: said to refuse %d requests together, plain buckets refuse %d", perDay, r.Refused, refused)
				}
			}
		})
	}
}

// traceOf returns the requests of a real log in their order.
func traceOf(t *testing.T, path string) (requests []exact.TraceRequest) {
	t.Helper()
	for r, err := range exact.Trace(path) {
		if err != nil {
			t.Fatal(err)
		}
		requests = append(requests, r)
	}
	slices.SortStableFunc(requests, func(a, b exact.TraceRequest) int { return cmp.Compare(a.At, b.At) })
	return requests
}

// simulated is a rule with the known times at which its keys are hot.
type simulated struct {
	rule   *rules.Rule
	keys   [][]string                   // by request
	events map[string][]exact.HotChange // by key
}

// simulate counts the keys of a rule exactly.
func simulate(requests []exact.TraceRequest, rule *rules.Rule) *simulated {
	th := rule.Hot[0]
	counted := exact.NewThreshold(th.Rate.N, th.Rate.Per)
	if th.Kind == rules.Jump {
		counted.Kind, counted.Factor = "jump", exact.ParseRatio(jumpFactor)
	}
	c := exact.NewCounter(exact.RuleSpec{Hot: []exact.ThresholdSpec{counted}})
	s := &simulated{rule: rule}
	for _, r := range requests {
		c.Tick(r.At)
		keys := keysOf(rule, r)
		for _, key := range keys {
			c.Add(r.At, key, 1)
		}
		s.keys = append(s.keys, keys)
	}
	s.events = c.Result().Events
	return s
}

// keysOf returns the keys of a request that are counted and limited by a proposed rule.
func keysOf(rule *rules.Rule, r exact.TraceRequest) (keys []string) {
	allowed := make(map[string]bool)
	for _, x := range rule.Except {
		allowed[x.Values[0].Value] = true
	}
	path, _, _ := strings.Cut(r.Target, "?")
	wild, ok := match(rule.Match.Route.String(), r.Method, path)
	if !ok {
		return nil
	}
	name := rule.By.Names[0]
	if name.Source == rules.Path {
		if value, err := url.PathUnescape(wild[name.Name]); err != nil || !allowed[value] {
			keys = append(keys, wild[name.Name])
		}
		return keys
	}
	for _, key := range exact.Keys(name.Name, r.Method, r.Target) {
		_, query, _ := strings.Cut(key, "?")
		if values, err := url.ParseQuery(query); err != nil || !allowed[values.Get(name.Name)] {
			keys = append(keys, query)
		}
	}
	return keys
}

// isHot reports whether a key is limited at an instant. An instance learns in the next tenth of a
// second that a key is hot, and at the end of the deciding pane that it has cooled.
func (s *simulated) isHot(key string, at int64) (hot bool) {
	const tenth = int64(100 * time.Millisecond)
	for _, e := range s.events[key] {
		if e.Hot && at/tenth > e.At/tenth || !e.Hot && at >= e.At {
			hot = e.Hot
		}
	}
	return hot
}

// plainBucket is a token bucket, in the nanoseconds that its tokens took. A token takes a whole
// number of them, rounded up, so that no rate is exceeded. Where a log has whole seconds, seven
// tokens of 7/s are then not quite there after one, and six requests pass.
type plainBucket struct{ left, at int64 }

// refusedBy returns how many requests the buckets of the rules' limits refuse together, and the
// number of their keys. A request that one of them refuses takes nothing from the others.
func refusedBy(requests []exact.TraceRequest, rules []*simulated) (refused int64, values int) {
	buckets := make([]map[string]*plainBucket, len(rules))
	of := make(map[string]bool)
	for i := range buckets {
		buckets[i] = make(map[string]*plainBucket)
	}
	for number, r := range requests {
		allowed := true
		var taken []func()
		for i, s := range rules {
			rate := s.rule.Limit.Rate
			token := (int64(rate.Per) + rate.N - 1) / rate.N
			full := rate.N * token
			for _, key := range s.keys[number] {
				if !s.isHot(key, r.At) {
					continue
				}
				b := buckets[i][key]
				if b == nil {
					b = &plainBucket{full, r.At}
					buckets[i][key] = b
				}
				b.left, b.at = min(full, b.left+r.At-b.at), r.At
				if b.left < token {
					allowed, of[s.rule.ID+" "+key] = false, true
				}
				taken = append(taken, func() { b.left -= token })
			}
		}
		if !allowed {
			refused++
			continue
		}
		for _, take := range taken {
			take()
		}
	}
	return refused, len(of)
}
