package middleware

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// oracle decides as the documentation says, in the simplest way. Its clock stands still, and all
// limits have the same rate of one token an hour.
type oracle struct {
	rules  []rules.Rule
	hot    map[string]bool
	taken  map[string]int64 // tokens taken, by bucket
	counts map[string]int64
}

func (o *oracle) decide(params []rules.Param) rules.Decision {
	d := rules.Decision{Allowed: true}
	var took []string
	deny := func(rule *rules.Rule, limit *rules.Limit, bucket string, reason rules.Reason) {
		switch {
		case limit != nil && limit.Mode == rules.ModeShadow:
			if d.Reason == rules.ReasonNone {
				d.Reason, d.Rule = rules.ReasonShadow, rule.ID
			}
		case d.Allowed, reason == rules.ReasonBlocked && d.Reason != reason:
			d = rules.Decision{Reason: reason, Rule: rule.ID}
			if reason == rules.ReasonLimited {
				d.Limit, d.RetryAfter, d.ResetAfter = limit.Burst, time.Hour, time.Duration(o.taken[bucket])*time.Hour
			}
		}
	}
	for i := range o.rules {
		rule := &o.rules[i]
		groups := make(map[string]bool)
		for _, k := range oracleKeys(rule.By, params) {
			set, key := k.params, rule.ID+" "+k.text()
			limit, bucket := rule.Limit, key
			if rule.By.Kind == rules.ByNone {
				bucket = rule.ID
			}
			if at := slices.IndexFunc(rule.Except, func(x rules.Exception) bool { return oracleMatches(x, set) }); at >= 0 {
				x := rule.Except[at]
				if x.Action == rules.Allow {
					continue
				}
				if x.Action == rules.Block {
					deny(rule, rule.Limit, bucket, rules.ReasonBlocked)
					continue
				}
				if x.Limit != nil {
					limit, bucket = x.Limit, fmt.Sprint(bucket, " exception ", at)
				}
			}
			if len(rule.Hot) > 0 {
				o.counts[key]++
				if group := k.group(); groups[group] && oracleAddsUp(rule) {
					o.counts[rule.ID+" GET /s?~again&"+group]++
				}
				groups[k.group()] = true
				if !o.hot[key] {
					continue
				}
			}
			if limit == nil {
				continue
			}
			if o.taken[bucket] >= limit.Burst {
				deny(rule, limit, bucket, rules.ReasonLimited)
				continue
			}
			o.taken[bucket]++
			took = append(took, bucket)
			left := limit.Burst - o.taken[bucket]
			if d.Allowed && (d.Reason != rules.ReasonWithin || left < d.Remaining) {
				// An exceeded shadow limit gives way to any limit that allows. The tightest of the
				// limits that allow is reported.
				d = rules.Decision{
					Allowed: true, Reason: rules.ReasonWithin, Limit: limit.Burst, Remaining: left,
					ResetAfter: time.Duration(o.taken[bucket]) * time.Hour, Rule: rule.ID,
				}
			}
		}
	}
	if !d.Allowed {
		for _, bucket := range took {
			o.taken[bucket]--
		}
	}
	return d
}

// oracleKey holds the parameters of one key, or represents the keys beyond the bound.
type oracleKey struct {
	params []rules.Param
	more   bool
}

func (k oracleKey) text() string {
	if k.more {
		return "GET /s?~more"
	}
	return rules.Text("GET /s", k.params...)
}

// group returns the names of the key's parameters, which identify its group within a route.
func (k oracleKey) group() string {
	var names []string
	for _, p := range k.params {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	return strings.Join(names, "&")
}

// oracleKeys returns the keys that a rule makes.
func oracleKeys(by rules.By, params []rules.Param) (keys []oracleKey) {
	if by.Kind == rules.ByNone {
		return []oracleKey{{params: params}}
	}
	sorted := slices.SortedFunc(slices.Values(params), func(a, b rules.Param) int {
		return strings.Compare(a.Name+"\x00"+a.Value, b.Name+"\x00"+b.Value)
	})
	params = slices.DeleteFunc(sorted, func(p rules.Param) bool {
		named := slices.ContainsFunc(by.Names, func(n rules.Param) bool { return n.Name == p.Name })
		return len(by.Names) == 0 && p.Name == "token" || len(by.Names) > 0 && !named
	})
	distinct := slices.Compact(slices.Clone(params))
	switch by.Kind {
	case rules.ByEach:
		chosen := oracleChoice(distinct)
		for _, p := range chosen {
			keys = append(keys, oracleKey{params: []rules.Param{p}})
		}
		if len(chosen) < len(distinct) {
			keys = append(keys, oracleKey{more: true})
		}
	case rules.ByNames:
		pairings := [][]rules.Param{nil}
		for _, name := range by.Names {
			var longer [][]rules.Param
			for _, set := range pairings {
				for _, p := range distinct {
					if p.Name == name.Name {
						longer = append(longer, append(slices.Clone(set), p))
					}
				}
			}
			if len(longer) > 0 {
				pairings = longer
			}
		}
		for i, set := range pairings {
			if len(set) > 0 && i < 8 {
				keys = append(keys, oracleKey{params: set})
			}
		}
		if len(pairings) > 8 {
			keys = append(keys, oracleKey{more: true})
		}
	case rules.ByCombinations:
		all := len(distinct)
		distinct = oracleChoice(distinct) // there are no more than eight names
		for size := 1; size <= 3; size++ {
			var sets [][]rules.Param
			for set := 1; set < 1<<len(distinct); set++ {
				var of []rules.Param
				for i, p := range distinct {
					if set>>i&1 == 1 {
						of = append(of, p)
					}
				}
				if len(of) == size {
					sets = append(sets, of)
				}
			}
			if len(keys)+len(sets) > 28 {
				break
			}
			for _, set := range sets {
				keys = append(keys, oracleKey{params: set})
			}
		}
		if len(distinct) < all {
			keys = append(keys, oracleKey{more: true})
		}
	default:
		if len(params) > 0 || by.Kind == rules.ByAll {
			keys = append(keys, oracleKey{params: params})
		}
	}
	return keys
}

// oracleChoice returns the eight parameters that have a key each, in their order: the first value
// of each name, then the second.
func oracleChoice(distinct []rules.Param) (chosen []rules.Param) {
	numbers := make(map[rules.Param]int)
	seen := make(map[string]int)
	for _, p := range distinct {
		numbers[p] = seen[p.Name]
		seen[p.Name]++
	}
	byNumber := slices.Clone(distinct)
	slices.SortStableFunc(byNumber, func(a, b rules.Param) int { return numbers[a] - numbers[b] })
	for _, p := range distinct {
		if slices.Index(byNumber, p) < 8 {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// oracleAddsUp reports whether the counts of a rule's keys are added up to requests.
func oracleAddsUp(rule *rules.Rule) bool {
	return rule.By.Kind == rules.ByEach || rule.By.Kind == rules.ByCombinations || slices.ContainsFunc(rule.Hot, func(t rules.Threshold) bool { return t.Kind == rules.Share })
}

func oracleMatches(x rules.Exception, params []rules.Param) bool {
	for _, v := range x.Values {
		pattern := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(v.Value), `\*`, ".*") + "$")
		if !slices.ContainsFunc(params, func(p rules.Param) bool { return p.Name == v.Name && pattern.MatchString(p.Value) }) {
			return false
		}
	}
	return true
}

// drawRule draws a rule for all requests, with the limits of the oracle.
func drawRule(rt *rapid.T, id string) rules.Rule {
	names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	values := rapid.SampledFrom([]string{"1", "2", "x y", "*", "x*", "*y", "2*"})
	drawLimit := func() *rules.Limit {
		l := limit(1, rapid.Int64Range(1, 3).Draw(rt, "burst"))
		if rapid.IntRange(0, 3).Draw(rt, "shadow") == 0 {
			l.Mode = rules.ModeShadow
		}
		return l
	}
	r := rules.Rule{ID: id, Match: rules.Match{Route: anyRoute}}
	r.By.Kind = rapid.SampledFrom([]rules.ByKind{rules.ByNone, rules.ByAll, rules.ByEach, rules.ByNames, rules.ByCombinations}).Draw(rt, "by")
	if r.By.Kind == rules.ByNames || r.By.Kind == rules.ByCombinations && rapid.Bool().Draw(rt, "named") {
		for _, name := range rapid.SliceOfNDistinct(names, 1, 3, rapid.ID).Draw(rt, "names") {
			r.By.Names = append(r.By.Names, rules.Param{Name: name})
		}
	}
	if r.By.Kind != rules.ByNone && (r.By.Kind == rules.ByCombinations || rapid.Bool().Draw(rt, "hot")) {
		r.Hot = []rules.Threshold{rules.NewThreshold(rules.Rate{N: 100, Per: time.Second})}
		if rapid.Bool().Draw(rt, "share") {
			share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 100, Per: time.Second}}
			r.Hot = append(r.Hot, share.WithDefaults())
		}
	}
	if len(r.Hot) == 0 || rapid.Bool().Draw(rt, "limited") {
		r.Limit = drawLimit()
	}
	most := 3
	if r.By.Kind == rules.ByNone {
		most = 0 // there is no key that has values
	}
	for range rapid.IntRange(0, most).Draw(rt, "exceptions") {
		x := rules.Exception{Action: rapid.SampledFrom([]rules.Action{rules.Adjust, rules.Allow, rules.Block}).Draw(rt, "action")}
		for range rapid.IntRange(1, 2).Draw(rt, "values") {
			name := names.Draw(rt, "name")
			if len(r.By.Names) > 0 { // one that the rule's keys can have
				name = rapid.SampledFrom(r.By.Names).Draw(rt, "own name").Name
			}
			x.Values = append(x.Values, rules.QueryMatch{Name: name, Value: values.Draw(rt, "value")})
		}
		if r.By.Kind == rules.ByEach {
			x.Values = x.Values[:1]
		}
		if x.Action == rules.Adjust {
			x.Limit = drawLimit()
		}
		r.Except = append(r.Except, x)
	}
	return r
}

// Whatever the rules and their exceptions, requests are decided and counted like the oracle's.
func TestDecidesAsTheOracle(t *testing.T) {
	seen, more, again := map[rules.Reason]int{}, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		o := &oracle{hot: map[string]bool{}, taken: map[string]int64{}, counts: map[string]int64{}}
		for i := range rapid.IntRange(1, 3).Draw(rt, "rules") {
			o.rules = append(o.rules, drawRule(rt, fmt.Sprint("r", i)))
		}
		f := newFixture(rt, rules.Rules{Rules: o.rules})
		param := rapid.Custom(func(t *rapid.T) rules.Param {
			return rules.Param{
				Name:  rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "token"}).Draw(t, "name"),
				Value: rapid.SampledFrom([]string{"1", "2", "x y", "2&"}).Draw(t, "value"),
			}
		})
		requests := rapid.SliceOfN(rapid.OneOf(rapid.SliceOfN(param, 0, 5), rapid.SliceOfN(param, 0, 20), rapid.SliceOfN(param, 15, 20)), 1, 4).Draw(rt, "requests")
		var heat []published.Hot
		for _, params := range requests {
			for _, r := range o.rules {
				for _, set := range oracleKeys(r.By, params) {
					if rapid.Bool().Draw(rt, "is hot") {
						key := rules.Key{Rule: r.ID, Text: set.text()}
						o.hot[key.String()] = true
						heat = append(heat, published.Hot{Key: key})
					}
				}
			}
		}
		replaceHot(f.hot, "", heat)
		for range rapid.IntRange(1, 15).Draw(rt, "calls") {
			params := rapid.SampledFrom(requests).Draw(rt, "request")
			var query []string
			for _, p := range params {
				query = append(query, url.QueryEscape(p.Name)+"="+url.QueryEscape(p.Value))
			}
			want := o.decide(params)
			seen[want.Reason]++
			if got := ofLimits(rt, f.Check(get("GET /s", "/s", strings.Join(query, "&")))); got != want {
				rt.Fatalf("%q is decided\n%+v, want\n%+v", query, got, want)
			}
		}
		for key := range o.counts {
			more, again = more+strings.Count(key, "~more"), again+strings.Count(key, "~again")
		}
		if got := f.keyCounts(); !maps.Equal(got, o.counts) {
			rt.Fatalf("counted\n%v, want\n%v", got, o.counts)
		}
	})
	if !testing.Short() && (more == 0 || again == 0) {
		t.Errorf("counted %d times what is beyond the keys, %d times what a share has too much: the test tests too little", more, again)
	}
	for _, reason := range []rules.Reason{rules.ReasonNone, rules.ReasonWithin, rules.ReasonLimited, rules.ReasonBlocked, rules.ReasonShadow} {
		if !testing.Short() && seen[reason] == 0 {
			t.Errorf("nothing was decided as %v: the test tests too little", reason)
		}
	}
}
