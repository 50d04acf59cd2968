package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func drawRate(t *rapid.T, what string, least time.Duration) rules.Rate {
	return rules.Rate{
		N:   rapid.Int64Range(1, 1000).Draw(t, what),
		Per: time.Duration(rapid.Int64Range(int64(least/time.Millisecond), 3_600_000).Draw(t, what+" per")) * time.Millisecond,
	}
}

func drawRule(t *rapid.T, id string) rules.Rule {
	pattern := rapid.SampledFrom([]string{"*", "GET /u/{id}", "/static/{id...}", "POST  /a", "users.Get"}).Draw(t, "route")
	parsed, err := rules.ParseRoute(pattern)
	if err != nil {
		t.Fatal(err)
	}
	r := rules.Rule{ID: id, Match: rules.Match{Route: parsed}}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"q", "filter", "query:a:b", "header:x-plan", "cookie:Cart", "addr:v4/24", "ctx:user", "form:a b", `json:a\.b.*`, "1", "é", `"`, "it's"}), 0, 3, rapid.ID[string]).Draw(t, "query") {
		value := rapid.SampledFrom([]string{"*", "a*b", "", "1", "true", "null", "#x", "é, {}", `\`}).Draw(t, "value")
		r.Match.Query = append(r.Match.Query, rules.QueryMatch{Name: name, Value: value})
	}
	if r.Ignore = rapid.IntRange(0, 4).Draw(t, "ignore") == 0; r.Ignore {
		return r
	}
	does := rapid.IntRange(1, 3).Draw(t, "does")
	r.Count = rapid.SampledFrom([]rules.Unit{rules.Requests, rules.Bytes, rules.Millis, rules.Units}).Draw(t, "count")
	if does&1 != 0 {
		r.Hot = drawHot(t)
		r.Prefix = rapid.SampledFrom([]string{"", "own." + id}).Draw(t, "prefix")
	}
	if does&2 != 0 {
		r.Limit = drawLimit(t, r.Count)
	}
	least, most := rules.ByNone, rules.ByNames
	if len(r.Hot) > 0 {
		least, most = rules.ByAll, rules.ByCombinations
	}
	r.By.Kind = rules.ByKind(rapid.IntRange(int(least), int(most)).Draw(t, "by"))
	names := []rules.Param{{Name: "q"}, {Name: "id"}, {Name: "a:b"}, {Name: "f[x]"}, {Name: "größe"}}
	if pattern != "POST  /a" && pattern != "users.Get" {
		names = append(names, rules.Param{Source: rules.Path, Name: "id"})
	}
	if r.By.Kind == rules.ByNames || r.By.Kind == rules.ByCombinations && rapid.Bool().Draw(t, "named") {
		names = append(names, rules.Param{Source: rules.Header, Name: "x-plan"}, rules.Param{Source: rules.Cookie, Name: "Cart"}, rules.Param{Source: rules.Ctx, Name: "user"}, rules.Param{Source: rules.RPC, Name: "user.id"},
			rules.Param{Source: rules.Form, Name: "user[name]"}, rules.Param{Source: rules.JSON, Name: `items.*.a\.b`},
			rules.Param{Source: rules.Addr, Name: rapid.SampledFrom([]string{"ip", "v4/24", "v6/48"}).Draw(t, "level")})
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, rules.MaxCombined, rapid.ID[rules.Param]).Draw(t, "names")
		r.By.Names = names
	}
	if r.DependsOnBody() {
		r.Unread = rules.Unread(rapid.IntRange(0, int(rules.UnreadReject)).Draw(t, "unread"))
	}
	r.ParamsOnly = r.By.Kind != rules.ByNone && rapid.Bool().Draw(t, "params")
	if r.By.Kind != rules.ByNone {
		for range rapid.IntRange(0, 3).Draw(t, "exceptions") {
			r.Except = append(r.Except, drawException(t, &r, names))
		}
		// Exceptions are sorted as a file has them.
		slices.SortStableFunc(r.Except, func(a, b rules.Exception) int { return int(a.Action) - int(b.Action) })
	}
	return r
}

func drawClient(t *rapid.T) (c rules.Client) {
	c.Header = rapid.SampledFrom([]rules.ClientHeader{"", rules.XForwardedFor, rules.Forwarded}).Draw(t, "client")
	if c.Header == "" {
		return c
	}
	c.TrustUnix = rapid.Bool().Draw(t, "unix")
	least := 1
	if c.TrustUnix {
		least = 0
	}
	for _, s := range rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "192.0.2.7/32", "2001:db8::/32"}), least, 3).Draw(t, "trusted") {
		c.Trusted = append(c.Trusted, netip.MustParsePrefix(s))
	}
	return c
}

// drawHot draws thresholds, with at most one for each kind and window.
func drawHot(t *rapid.T) []rules.Threshold {
	threshold := rapid.Custom(func(t *rapid.T) rules.Threshold {
		rate := drawRate(t, "hot", time.Second)
		h := rules.Threshold{
			Kind: rules.ThresholdKind(rapid.IntRange(int(rules.FixedRate), int(rules.Top)).Draw(t, "kind")),
			Rate: rate, Exit: rules.NewFraction(rapid.Int64Range(1_00000, 100_00000).Draw(t, "exit"), 100_00000),
			Hold: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hold")),
		}
		if rapid.Bool().Draw(t, "cools slowly") {
			h.CoolDown = time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "cool-down"))
		}
		if h.Kind == rules.FixedRate && rapid.Bool().Draw(t, "exit is a count") {
			if exit := rules.NewFraction(rapid.Int64Range(1, rate.N).Draw(t, "exit count"), rate.N); exit.Num*100 >= exit.Den {
				h.Exit = exit
			}
		}
		switch h.Kind {
		case rules.Share:
			h.Factor = rules.NewFraction(rapid.Int64Range(1, 1000_000).Draw(t, "millionths"), 1000_000)
		case rules.Jump:
			h.Factor = rules.NewFraction(rapid.Int64Range(11, 10_000).Draw(t, "tenths"), 10)
			h.Over = rules.Over(rapid.IntRange(0, int(rules.OverDay)).Draw(t, "over"))
		case rules.Top:
			h.Top = rapid.IntRange(1, rules.MaxTop).Draw(t, "top")
		}
		return h
	})
	return rapid.SliceOfNDistinct(threshold, 1, 3, func(h rules.Threshold) string { return fmt.Sprint(h.Kind, h.Over, h.Rate.Per) }).Draw(t, "thresholds")
}

// drawLimit draws a limit in its complete form, with the defaults that reading a file fills in.
func drawLimit(t *rapid.T, unit rules.Unit) *rules.Limit {
	requests := unit == rules.Requests
	l := &rules.Limit{Mode: rapid.SampledFrom([]rules.Mode{rules.ModeLimit, rules.ModeShadow, rules.ModeServe, rules.ModeWait}).Draw(t, "mode")}
	if l.Mode == rules.ModeWait && !requests {
		l.Mode = rules.ModeLimit
	}
	if l.Mode == rules.ModeWait {
		l.Wait = drawSpan(t, "wait", 10*time.Minute)
	}
	if rapid.IntRange(0, 3).Draw(t, "concurrent") == 0 {
		l.Concurrency = rapid.IntRange(1, rules.MaxConcurrency).Draw(t, "concurrency")
		if l.Mode == rules.ModeWait && rapid.Bool().Draw(t, "line") {
			l.Queue = rapid.IntRange(1, rules.MaxQueue).Draw(t, "queue")
		}
	}
	if l.Concurrency == 0 || rapid.Bool().Draw(t, "rated") {
		l.Quota = drawQuota(t, l.Mode == rules.ModeWait)
		if rapid.Bool().Draw(t, "penal") && requests {
			l.Penalty = drawSpan(t, "penalty", rules.MaxPenalty)
		}
		l.CountDenied = requests && l.Algorithm.Windowed() && rapid.Bool().Draw(t, "count denied")
	}
	l.Scope = rapid.SampledFrom([]rules.Scope{"", rules.ScopeInstance, rules.ScopeShare, rules.ScopeExact}).Draw(t, "scope")
	if l.Scope == rules.ScopeExact {
		l.Outage = rapid.SampledFrom([]rules.OutagePolicy{"", rules.OutageLocal, rules.OutageOpen, rules.OutageClosed}).Draw(t, "away")
		if !requests {
			l.Scope, l.Outage = "", ""
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "prior") == 0 {
		l.Priority = &rules.Priority{Name: "tier", First: rapid.SliceOfN(rapid.SampledFrom([]string{"gold", "", "1", "é"}), 1, rules.MaxClasses-1).Draw(t, "first")}
	}
	if l.Mode == rules.ModeServe && rapid.Bool().Draw(t, "answered") {
		l.Serve = &rules.Response{
			Status: rapid.IntRange(200, 599).Draw(t, "status"),
			Type:   rapid.SampledFrom([]string{defaultType, "application/json"}).Draw(t, "type"),
			Body:   rapid.SampledFrom([]string{"", "[]", "busy: come back"}).Draw(t, "body"),
		}
	}
	return l
}

func drawSpan(t *rapid.T, what string, most time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(most)).Draw(t, what))
}

func drawQuota(t *rapid.T, waits bool) rules.Quota {
	q := rules.Quota{Algorithm: rapid.SampledFrom(append(slices.Clone(rules.Algorithms), "x_own")).Draw(t, "algorithm"), Rate: drawRate(t, "limit", time.Millisecond)}
	q.Burst = rapid.Int64Range(1, 100_000).Draw(t, "burst")
	switch {
	case q.Algorithm == rules.LeakyBucket:
		q.Shape = waits && rapid.Bool().Draw(t, "shape")
	case q.Algorithm.Windowed():
		q.Burst = q.Rate.N
		if q.Algorithm == rules.FixedWindow && rapid.Bool().Draw(t, "natural") {
			q.Calendar = rapid.SampledFrom([]rules.Calendar{rules.CalendarSecond, rules.CalendarWeek, rules.CalendarYear}).Draw(t, "calendar")
			q.Rate.Per = rules.CalendarPeriods[q.Calendar]
			q.Zone = rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin"}).Draw(t, "zone")
		}
		if q.Algorithm == rules.SlidingBlocks {
			q.Blocks = rapid.IntRange(1, rules.MaxBlocks).Draw(t, "blocks")
		}
	case rapid.Bool().Draw(t, "warm"):
		q.WarmUp = drawSpan(t, "warm_up", 24*time.Hour)
		q.ColdFactor = rapid.SampledFrom([]float64{3, 1.5, 10}).Draw(t, "cold")
	default:
		q.Missing = rapid.Int64Range(0, q.Burst).Draw(t, "missing")
	}
	return q
}

// drawException draws an exception for parameters among names.
func drawException(t *rapid.T, r *rules.Rule, names []rules.Param) rules.Exception {
	x := rules.Exception{Action: rules.Action(rapid.IntRange(int(rules.Adjust), int(rules.Block)).Draw(t, "action"))}
	most := map[rules.ByKind]int{rules.ByEach: 1, rules.ByCombinations: 3, rules.ByAll: 4, rules.ByNames: 4}[r.By.Kind]
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, min(most, len(names)), rapid.ID[rules.Param]).Draw(t, "names") {
		x.Values = append(x.Values, rules.QueryMatch{
			Name: p.FormatName(), Value: rapid.SampledFrom([]string{"*", "phone*", "", "1", "true", "é"}).Draw(t, "value"),
		})
	}
	if x.Action != rules.Adjust {
		return x
	}
	for _, h := range r.Hot {
		if h.Kind == rules.FixedRate {
			x.Rate = rules.Rate{N: rapid.Int64Range(1, 1_000_000).Draw(t, "except"), Per: h.Rate.Per}
		}
	}
	if x.Rate.IsZero() || rapid.Bool().Draw(t, "limits") {
		x.Limit = drawLimit(t, r.Count)
	}
	return x
}

// drawSource draws a file, written in one of several equivalent ways, and its meaning.
func drawSource(t *rapid.T) (source string, want *rules.Rules, settings File) {
	w := writer{t}
	want = &rules.Rules{
		Namespace:   rapid.StringMatching(`[A-Za-z][A-Za-z0-9_-]{0,9}`).Draw(t, "namespace"),
		Evaluate:    rapid.SampledFrom([]rules.Evaluate{rules.EvaluateAll, rules.EvaluateFirst}).Draw(t, "evaluate"),
		DenyNoMatch: w.coin("deny"),
		Client:      drawClient(t),
		Bodies:      rapid.SampledFrom([]rules.Bodies{{}, {Max: 1 << 20}, {Total: 5_000_000}, {Max: 1000, Total: 1000}}).Draw(t, "bodies"),
	}
	want.LimitKeys = rapid.SampledFrom([]int{0, 1, 100_000, rules.MaxLimitKeys}).Draw(t, "max_keys")
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		want.Rules = append(want.Rules, drawRule(t, fmt.Sprintf("r%d", i)))
	}
	settings = drawSettings(t, want)
	var b strings.Builder
	fmt.Fprintf(&b, "namespace: %q\nevaluate: %s\nno_match: %s\n%srules:\n", want.Namespace,
		[]string{"all", "first"}[want.Evaluate], map[bool]string{false: "allow", true: "deny"}[want.DenyNoMatch], w.client(&want.Client)+w.bodies(want.Bodies)+w.maxKeys(want.LimitKeys)+w.settings(&settings))
	for i := range want.Rules {
		fmt.Fprintf(&b, "  - %s\n", w.rule(&want.Rules[i]))
	}
	if source = b.String(); w.coin("CRLF") {
		source = "\uFEFF" + strings.ReplaceAll(source, "\n", "\r\n")
	}
	return source, want, settings
}

// Rules written in any way are read as they were meant.
func TestWrittenRulesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source, want, settings := drawSource(t)
		f, err := Parse("f.yaml", []byte(source))
		if err != nil {
			t.Fatalf("%v\nin\n%s", err, source)
		}
		want.Version = f.Rules.Version
		if !reflect.DeepEqual(f.Rules, want) {
			t.Fatalf("got\n%+v\nwant\n%+v\nof\n%s", f.Rules, want, source)
		}
		if err := f.Rules.Validate(); err != nil {
			t.Fatal(err)
		}
		if settings.Rules = f.Rules; !reflect.DeepEqual(content(f), content(&settings)) {
			t.Fatalf("got\n%+v\nwant\n%+v\nof\n%s", f, settings, source)
		}
	})
}
