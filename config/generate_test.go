package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"pgregory.net/rapid"
)

// writer writes YAML, and chooses at random among ways that mean the same.
type writer struct{ *rapid.T }

func (w writer) coin(what string) bool { return rapid.Bool().Draw(w.T, what) }

// text writes a scalar that is text however it is written: in one of the two
// kinds of quotes, or bare if that is possible.
func (w writer) text(s string) string {
	plain := s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_%./") == ""
	switch n := rapid.IntRange(0, 2).Draw(w.T, "quotes"); {
	case n == 0 && plain && s != "null":
		return s
	case n <= 1:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	}
	return fmt.Sprintf("%q", s)
}

type pair struct{ name, value string }

// fields writes a map: within braces, or a line for each.
func (w writer) fields(indent string, pairs ...pair) string {
	var b strings.Builder
	if w.coin("flow") {
		for i, p := range pairs {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s:%s%s", p.name, w.space(), p.value)
		}
		return "{" + b.String() + "}"
	}
	for _, p := range pairs {
		fmt.Fprintf(&b, "\n%s%s:%s%s # note", indent, p.name, w.space(), p.value)
	}
	return b.String()
}

func (w writer) space() string {
	return rapid.SampledFrom([]string{" ", "  ", " \t", "\t "}).Draw(w.T, "space")
}

func (w writer) names(names []hotparam.Param) string {
	var items []string
	for _, p := range names {
		switch {
		case p.Source != hotparam.Query:
			items = append(items, w.text(p.Source.String()+":"+p.Name))
		case strings.Contains(p.Name, ":") || p.Name == "id" || w.coin("query"):
			items = append(items, w.text("query:"+p.Name))
		default:
			items = append(items, w.text(p.Name))
		}
	}
	return "[" + strings.Join(items, w.space()+",") + "]"
}

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
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"q", "filter", "a:b", "1", "é", `"`, "it's"}), 0, 3, rapid.ID[string]).Draw(t, "query") {
		value := rapid.SampledFrom([]string{"*", "a*b", "", "1", "true", "null", "#x", "é, {}", `\`}).Draw(t, "value")
		r.Match.Query = append(r.Match.Query, hotparam.QueryMatch{Name: name, Value: value})
	}
	if r.Ignore = rapid.IntRange(0, 4).Draw(t, "ignore") == 0; r.Ignore {
		return r
	}
	does := rapid.IntRange(1, 3).Draw(t, "does")
	if does&1 != 0 {
		rate := drawRate(t, "hot", time.Second)
		r.Hot = &hotparam.Threshold{
			Rate: rate, Exit: rapid.Int64Range(1, rate.N).Draw(t, "exit"),
			Hold: time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "hold")),
		}
		r.Prefix = rapid.SampledFrom([]string{"", "own." + id}).Draw(t, "prefix")
	}
	if does&2 != 0 {
		r.Limit = &hotparam.Limit{
			Rate: drawRate(t, "limit", time.Millisecond), Burst: rapid.Int64Range(1, 100_000).Draw(t, "burst"),
			Mode: rapid.SampledFrom([]hotparam.Mode{hotparam.ModeLimit, hotparam.ModeShadow}).Draw(t, "mode"),
		}
	}
	least := hotparam.ByNone
	if r.Hot != nil {
		least = hotparam.ByAll
	}
	r.By.Kind = hotparam.ByKind(rapid.IntRange(int(least), int(hotparam.ByNames)).Draw(t, "by"))
	if r.By.Kind == hotparam.ByNames {
		names := []hotparam.Param{{Name: "q"}, {Name: "id"}, {Name: "a:b"}, {Name: "f[x]"}, {Name: "größe"}}
		if pattern != "POST  /a" && pattern != "users.Get" {
			names = append(names, hotparam.Param{Source: hotparam.Path, Name: "id"})
		}
		r.By.Names = rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 4, rapid.ID[hotparam.Param]).Draw(t, "names")
	}
	r.ParamsOnly = r.By.Kind != hotparam.ByNone && rapid.Bool().Draw(t, "params")
	return r
}

func (w writer) rule(r *hotparam.Rule) string {
	match := []pair{{"route", w.text(r.Match.Route.String())}}
	if len(r.Match.Query) > 0 {
		var query []pair
		for _, q := range r.Match.Query {
			query = append(query, pair{fmt.Sprintf("%q", q.Name), w.text(q.Value)})
			if q.Value == "null" {
				query[len(query)-1].value = `"null"`
			}
		}
		match = append(match, pair{"query", w.inline(query)})
	}
	pairs := []pair{{"id", w.text(r.ID)}, {"match", w.inline(match)}}
	if r.Ignore {
		pairs = append(pairs, pair{"action", w.text("ignore")})
	}
	switch r.By.Kind {
	case hotparam.ByAll:
		if r.Hot == nil || w.coin("by") {
			pairs = append(pairs, pair{"by", w.text("all")})
		}
	case hotparam.ByEach:
		pairs = append(pairs, pair{"by", w.text("each")})
	case hotparam.ByNames:
		pairs = append(pairs, pair{"by", w.names(r.By.Names)})
	}
	if h := r.Hot; h != nil {
		exit := fmt.Sprint(h.Exit)
		if w.coin("exit") {
			exit = hotparam.Rate{N: h.Exit, Per: h.Rate.Per}.String()
		}
		hot := []pair{{"rate", w.text(h.Rate.String())}, {"exit", w.text(exit)}, {"hold", w.text(h.Hold.String())}}
		pairs = append(pairs, pair{"hot", w.inline(hot)})
	}
	if l := r.Limit; l != nil {
		limit := []pair{{"burst", fmt.Sprint(l.Burst)}, {"rate", w.text(l.Rate.String())}}
		if l.Mode == hotparam.ModeShadow {
			limit = append(limit, pair{"on_limit", "shadow"})
		} else if w.coin("reject") {
			limit = append(limit, pair{"on_limit", "reject"}, pair{"scope", "instance"}, pair{"algorithm", "token_bucket"})
		}
		pairs = append(pairs, pair{"limit", w.inline(limit)})
	}
	if r.Prefix != "" {
		pairs = append(pairs, pair{"prefix", w.text(r.Prefix)})
	}
	if r.ParamsOnly {
		pairs = append(pairs, pair{"key", w.text("params")})
	}
	return strings.TrimLeft(w.fields("    ", pairs...), " \n")
}

// inline writes a map within braces.
func (w writer) inline(pairs []pair) string {
	var parts []string
	for _, p := range pairs {
		parts = append(parts, p.name+":"+w.space()+p.value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Whatever rules are written, and however, they are read as they were meant.
func TestWrittenRulesAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := writer{t}
		want := &hotparam.Rules{
			Namespace:   rapid.StringMatching(`[A-Za-z][A-Za-z0-9_-]{0,9}`).Draw(t, "namespace"),
			Evaluate:    rapid.SampledFrom([]hotparam.Evaluate{hotparam.EvaluateAll, hotparam.EvaluateFirst}).Draw(t, "evaluate"),
			DenyNoMatch: w.coin("deny"),
		}
		var b strings.Builder
		fmt.Fprintf(&b, "namespace: %q\nevaluate: %s\nno_match: %s\nrules:\n", want.Namespace,
			[]string{"all", "first"}[want.Evaluate], map[bool]string{false: "allow", true: "deny"}[want.DenyNoMatch])
		for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
			r := drawRule(t, fmt.Sprintf("r%d", i))
			want.Rules = append(want.Rules, r)
			fmt.Fprintf(&b, "  - %s\n", w.rule(&r))
		}
		source := b.String()
		if w.coin("CRLF") {
			source = "\uFEFF" + strings.ReplaceAll(source, "\n", "\r\n")
		}
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
	})
}
