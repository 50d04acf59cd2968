package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"pgregory.net/rapid"
)

func drawRate(t *rapid.T, what string, least time.Duration) hotparam.Rate {
	return hotparam.Rate{
		N:   rapid.Int64Range(1, 1000).Draw(t, what),
		Per: time.Duration(rapid.Int64Range(int64(least/time.Millisecond), 3_600_000).Draw(t, what+" per")) * time.Millisecond,
	}
}

func drawRule(t *rapid.T, id string) hotparam.Rule {
	pattern := rapid.SampledFrom([]string{"*", "GET /u/{id}", "/static/{id...}", "POST  /a", "users.Get"}).Draw(t, "route")
	parsed, err := hotparam.ParseRoute(pattern)
	if err != nil {
		t.Fatal(err)
	}
	r := hotparam.Rule{ID: id, Match: hotparam.Match{Route: parsed}}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"q", "filter", "query:a:b", "header:x-plan", "cookie:Cart", "addr:v4/24", "ctx:user", "form:a b", `json:a\.b.*`, "1", "é", `"`, "it's"}), 0, 3, rapid.ID[string]).Draw(t, "query") {
		value := rapid.SampledFrom([]string{"*", "a*b", "", "1", "true", "null", "#x", "é, {}", `\`}).Draw(t, "value")
		r.Match.Query = append(r.Match.Query, hotparam.QueryMatch{Name: name, Value: value})
	}
	if r.Ignore = rapid.IntRange(0, 4).Draw(t, "ignore") == 0; r.Ignore {
		return r
	}
	does := rapid.IntRange(1, 3).Draw(t, "does")
	r.Count = rapid.SampledFrom([]hotparam.Unit{hotparam.Requests, hotparam.Bytes, hotparam.Millis, hotparam.Units}).Draw(t, "count")
	if does&1 != 0 {
		r.Hot = drawHot(t)
		r.Prefix = rapid.SampledFrom([]string{"", "own." + id}).Draw(t, "prefix")
	}
	if does&2 != 0 {
		r.Limit = drawLimit(t, r.Count)
	}
	least, most := hotparam.ByNone, hotparam.ByNames
	if len(r.Hot) > 0 {
		least, most = hotparam.ByAll, hotparam.ByCombinations
	}
	r.By.Kind = hotparam.ByKind(rapid.IntRange(int(least), int(most)).Draw(t, "by"))
	names := []hotparam.Param{{Name: "q"}, {Name: "id"}, {Name: "a:b"}, {Name: "f[x]"}, {Name: "größe"}}
	if pattern != "POST  /a" && pattern != "users.Get" {
		names = append(names, hotparam.Param{Source: hotparam.Path, Name: "id"})
	}
	if r.By.Kind == hotparam.ByNames || r.By.Kind == hotparam.ByCombinations && rapid.Bool().Draw(t, "named") {
		names = append(names, hotparam.Param{Source: hotparam.Header, Name: "x-plan"}, hotparam.Param{Source: hotparam.Cookie, Name: "Cart"}, hotparam.Param{Source: hotparam.Ctx, Name: "user"}, hotparam.Param{Source: hotparam.RPC, Name: "user.id"},
			hotparam.Param{Source: hotparam.Form, Name: "user[name]"}, hotparam.Param{Source: hotparam.JSON, Name: `items.*.a\.b`},
			hotparam.Param{Source: hotparam.Addr, Name: rapid.SampledFrom([]string{"ip", "v4/24", "v6/48"}).Draw(t, "level")})
		names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, hotparam.MaxCombined, rapid.ID[hotparam.Param]).Draw(t, "names")
		r.By.Names = names
	}
	if r.DependsOnBody() {
		r.Unread = hotparam.Unread(rapid.IntRange(0, int(hotparam.UnreadReject)).Draw(t, "unread"))
	}
	r.ParamsOnly = r.By.Kind != hotparam.ByNone && rapid.Bool().Draw(t, "params")
	if r.By.Kind != hotparam.ByNone {
		for range rapid.IntRange(0, 3).Draw(t, "exceptions") {
			r.Except = append(r.Except, drawException(t, &r, names))
		}
		// In the order in which a file has them.
		slices.SortStableFunc(r.Except, func(a, b hotparam.Exception) int { return int(a.Action) - int(b.Action) })
	}
	return r
}

func drawClient(t *rapid.T) (c hotparam.Client) {
	c.Header = rapid.SampledFrom([]hotparam.ClientHeader{"", hotparam.XForwardedFor, hotparam.Forwarded}).Draw(t, "client")
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

// drawHot draws thresholds, each kind with a window once.
func drawHot(t *rapid.T) []hotparam.Threshold {
	threshold := rapid.Custom(func(t *rapid.T) hotparam.Threshold {
		rate := drawRate(t, "hot", time.Second)
		h := hotparam.Threshold{
			Kind: hotparam.Kind(rapid.IntRange(int(hotparam.Absolute), int(hotparam.Top)).Draw(t, "kind")),
			Rate: rate, Exit: hotparam.NewFraction(rapid.Int64Range(1_00000, 100_00000).Draw(t, "exit"), 100_00000),
			Hold: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hold")),
		}
		if rapid.Bool().Draw(t, "cools slowly") {
			h.CoolDown = time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "cool-down"))
		}
		if h.Kind == hotparam.Absolute && rapid.Bool().Draw(t, "exit is a count") {
			if exit := hotparam.NewFraction(rapid.Int64Range(1, rate.N).Draw(t, "exit count"), rate.N); exit.Num*100 >= exit.Den {
				h.Exit = exit
			}
		}
		switch h.Kind {
		case hotparam.Share:
			h.Factor = hotparam.NewFraction(rapid.Int64Range(1, 1000_000).Draw(t, "millionths"), 1000_000)
		case hotparam.Jump:
			h.Factor = hotparam.NewFraction(rapid.Int64Range(11, 10_000).Draw(t, "tenths"), 10)
			h.Over = hotparam.Over(rapid.IntRange(0, int(hotparam.OverDay)).Draw(t, "over"))
		case hotparam.Top:
			h.Top = rapid.IntRange(1, hotparam.MaxTop).Draw(t, "top")
		}
		return h
	})
	return rapid.SliceOfNDistinct(threshold, 1, 3, func(h hotparam.Threshold) string { return fmt.Sprint(h.Kind, h.Over, h.Rate.Per) }).Draw(t, "thresholds")
}

// drawLimit draws a limit in its complete form, as a file is read.
func drawLimit(t *rapid.T, unit hotparam.Unit) *hotparam.Limit {
	requests := unit == hotparam.Requests
	l := &hotparam.Limit{Mode: rapid.SampledFrom([]hotparam.Mode{hotparam.ModeLimit, hotparam.ModeShadow, hotparam.ModeServe, hotparam.ModeWait}).Draw(t, "mode")}
	if l.Mode == hotparam.ModeWait && !requests {
		l.Mode = hotparam.ModeLimit
	}
	if l.Mode == hotparam.ModeWait {
		l.Wait = drawSpan(t, "wait", hotparam.MaxWait)
	}
	if rapid.IntRange(0, 3).Draw(t, "concurrent") == 0 {
		l.Concurrency = rapid.IntRange(1, hotparam.MaxConcurrency).Draw(t, "concurrency")
		if l.Mode == hotparam.ModeWait && rapid.Bool().Draw(t, "line") {
			l.Queue = rapid.IntRange(1, hotparam.MaxQueue).Draw(t, "queue")
		}
	}
	if l.Concurrency == 0 || rapid.Bool().Draw(t, "rated") {
		l.Quota = drawQuota(t, l.Mode == hotparam.ModeWait)
		if rapid.Bool().Draw(t, "penal") && requests {
			l.Penalty = drawSpan(t, "penalty", hotparam.MaxPenalty)
		}
		l.CountDenied = requests && l.Algorithm.Windowed() && rapid.Bool().Draw(t, "count denied")
	}
	l.Scope = rapid.SampledFrom([]hotparam.Scope{"", hotparam.ScopeShare, hotparam.ScopeExact}).Draw(t, "scope")
	if l.Scope == hotparam.ScopeExact {
		l.Away = rapid.SampledFrom([]hotparam.Away{"", hotparam.AwayLocal, hotparam.AwayOpen, hotparam.AwayClosed}).Draw(t, "away")
		if !requests {
			l.Scope, l.Away = "", ""
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "prior") == 0 {
		l.Priority = &hotparam.Priority{Name: "tier", First: rapid.SliceOfN(rapid.SampledFrom([]string{"gold", "", "1", "é"}), 1, hotparam.MaxClasses-1).Draw(t, "first")}
	}
	if l.Mode == hotparam.ModeServe && rapid.Bool().Draw(t, "answered") {
		l.Serve = &hotparam.Response{
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

func drawQuota(t *rapid.T, waits bool) hotparam.Quota {
	q := hotparam.Quota{Algorithm: rapid.SampledFrom(append(slices.Clone(hotparam.Algorithms), "x_own")).Draw(t, "algorithm"), Rate: drawRate(t, "limit", time.Millisecond)}
	q.Burst = rapid.Int64Range(1, 100_000).Draw(t, "burst")
	switch {
	case q.Algorithm == hotparam.LeakyBucket:
		q.Shape = waits && rapid.Bool().Draw(t, "shape")
	case q.Algorithm.Windowed():
		q.Burst = q.Rate.N
		if q.Algorithm == hotparam.FixedWindow && rapid.Bool().Draw(t, "natural") {
			q.Calendar = rapid.SampledFrom([]hotparam.Calendar{hotparam.CalendarSecond, hotparam.CalendarWeek, hotparam.CalendarYear}).Draw(t, "calendar")
			q.Rate.Per = hotparam.CalendarPeriods[q.Calendar]
			q.Zone = rapid.SampledFrom([]string{"", "UTC", "Europe/Berlin"}).Draw(t, "zone")
		}
		if q.Algorithm == hotparam.SlidingBlocks {
			q.Blocks = rapid.IntRange(1, hotparam.MaxBlocks).Draw(t, "blocks")
		}
	case rapid.Bool().Draw(t, "warm"):
		q.WarmUp = drawSpan(t, "warm_up", hotparam.MaxWarmUp)
		q.ColdFactor = rapid.SampledFrom([]float64{hotparam.DefaultColdFactor, 1.5, 10}).Draw(t, "cold")
	default:
		q.Missing = rapid.Int64Range(0, q.Burst).Draw(t, "missing")
	}
	return q
}

// drawException draws one for parameters among names.
func drawException(t *rapid.T, r *hotparam.Rule, names []hotparam.Param) hotparam.Exception {
	x := hotparam.Exception{Action: hotparam.Action(rapid.IntRange(int(hotparam.Adjust), int(hotparam.Block)).Draw(t, "action"))}
	most := map[hotparam.ByKind]int{hotparam.ByEach: 1, hotparam.ByCombinations: hotparam.MaxCombination, hotparam.ByAll: 4, hotparam.ByNames: 4}[r.By.Kind]
	for _, p := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, min(most, len(names)), rapid.ID[hotparam.Param]).Draw(t, "names") {
		x.Values = append(x.Values, hotparam.QueryMatch{
			Name: nameText(p), Value: rapid.SampledFrom([]string{"*", "phone*", "", "1", "true", "é"}).Draw(t, "value"),
		})
	}
	if x.Action != hotparam.Adjust {
		return x
	}
	for _, h := range r.Hot {
		if h.Kind == hotparam.Absolute {
			x.Rate = hotparam.Rate{N: rapid.Int64Range(1, 1_000_000).Draw(t, "except"), Per: h.Rate.Per}
		}
	}
	if x.Rate.IsZero() || rapid.Bool().Draw(t, "limits") {
		x.Limit = drawLimit(t, r.Count)
	}
	return x
}

// drawSource draws a file, written in one of the ways that mean the same, and what it means.
func drawSource(t *rapid.T) (source string, want *hotparam.Rules, settings File) {
	w := writer{t}
	want = &hotparam.Rules{
		Namespace:   rapid.StringMatching(`[A-Za-z][A-Za-z0-9_-]{0,9}`).Draw(t, "namespace"),
		Evaluate:    rapid.SampledFrom([]hotparam.Evaluate{hotparam.EvaluateAll, hotparam.EvaluateFirst}).Draw(t, "evaluate"),
		DenyNoMatch: w.coin("deny"),
		Client:      drawClient(t),
		Bodies:      rapid.SampledFrom([]hotparam.Bodies{{}, {Max: 1 << 20}, {Total: 5_000_000}, {Max: 1000, Total: 1000}}).Draw(t, "bodies"),
	}
	want.LimitKeys = rapid.SampledFrom([]int{0, 1, 100_000, hotparam.MaxLimitKeys}).Draw(t, "max_keys")
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

// Whatever rules are written, and however, they are read as they were meant.
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
