package config

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// writer writes YAML, and chooses at random among equivalent forms.
type writer struct{ *rapid.T }

func (w writer) coin(what string) bool { return rapid.Bool().Draw(w.T, what) }

// text writes a scalar that is text in any form: in one of the two kinds of quotes, or bare if
// possible.
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

// fields writes a map: within braces, or with a line for each field.
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

func (w writer) names(names []rules.Param) string {
	var items []string
	for _, p := range names {
		switch {
		case p.Source != rules.Query:
			name := p.Name
			if p.Source == rules.Header && w.coin("capitals") {
				name = strings.ToUpper(name)
			}
			items = append(items, w.text(p.Source.String()+":"+name))
		case strings.Contains(p.Name, ":") || p.Name == "id" || w.coin("query"):
			items = append(items, w.text("query:"+p.Name))
		default:
			items = append(items, w.text(p.Name))
		}
	}
	return "[" + strings.Join(items, w.space()+",") + "]"
}

// client writes the client section, or nothing if no proxy is trusted.
func (w writer) client(c *rules.Client) string {
	if c.Header == "" {
		return ""
	}
	var trusted []string
	for _, p := range c.Trusted {
		text := p.String()
		if p.IsSingleIP() && w.coin("address") {
			text = p.Addr().String()
		}
		trusted = append(trusted, fmt.Sprintf("%q", text))
	}
	if c.TrustUnix {
		trusted = append(trusted, w.text("unix"))
	}
	return "client: " + w.fields("  ", pair{"trusted", "[" + strings.Join(trusted, ", ") + "]"}, pair{"header", w.text(string(c.Header))}) + "\n"
}

// maxKeys writes max_keys, or nothing for the default.
func (w writer) maxKeys(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("max_keys: %d\n", n)
}

// bodies writes the bodies section, or nothing if all values are defaults.
func (w writer) bodies(b rules.Bodies) string {
	var pairs []pair
	if b.Max > 0 {
		pairs = append(pairs, pair{"max", w.count(b.Max, rules.Bytes)})
	}
	if b.Total > 0 {
		pairs = append(pairs, pair{"total", w.count(b.Total, rules.Bytes)})
	}
	if len(pairs) == 0 {
		return ""
	}
	return "bodies: " + w.fields("  ", pairs...) + "\n"
}

// count writes a number with its unit.
func (w writer) count(n int64, unit rules.Unit) string {
	switch {
	case unit == rules.Bytes && n%1024 == 0 && w.coin("KiB"):
		return fmt.Sprint(n/1024) + "KiB"
	case unit == rules.Bytes && n%1000 == 0 && w.coin("KB"):
		return fmt.Sprint(n/1000) + "KB"
	case unit == rules.Millis && w.coin("duration"):
		return (time.Duration(n) * time.Millisecond).String()
	}
	return fmt.Sprint(n)
}

func (w writer) rate(r rules.Rate, unit rules.Unit) string {
	return w.text(w.count(r.N, unit) + "/" + r.Per.String())
}

// threshold writes a threshold, as a single word if that suffices.
func (w writer) threshold(h rules.Threshold, unit rules.Unit) string {
	word := map[rules.ThresholdKind]string{
		rules.FixedRate: "", rules.Share: h.Factor.Decimal(100) + "%",
		rules.Jump: h.Factor.Decimal(1) + "x", rules.Top: fmt.Sprint(h.Top),
	}[h.Kind]
	field := map[rules.ThresholdKind]string{rules.FixedRate: "rate", rules.Share: "share", rules.Jump: "jump", rules.Top: "top"}[h.Kind]
	exit := h.Exit.Decimal(100) + "%"
	var pairs []pair
	switch {
	case h.Kind == rules.FixedRate:
		pairs = []pair{{"rate", w.rate(h.Rate, unit)}}
		if count := h.ExitCount(h.Rate.N); h.Exit == rules.NewFraction(count, h.Rate.N) {
			ways := 2
			if read, err := rules.ParseFraction(h.Exit.Decimal(100), 100); err != nil || read != h.Exit {
				ways = 1 // a part that no percentage can be
			}
			switch rapid.IntRange(0, ways).Draw(w.T, "exit") {
			case 0:
				exit = w.count(count, unit)
			case 1:
				exit = w.count(count, unit) + "/" + h.Rate.Per.String()
			}
		}
	case h.Kind != rules.Top && w.coin("window with the word"):
		pairs = []pair{{field, w.text(word + "/" + h.Rate.Per.String())}, {"min", w.text(w.count(h.Rate.N, unit))}}
	case w.coin("window of its own"):
		pairs = []pair{{field, w.text(word)}, {"min", w.text(w.count(h.Rate.N, unit))}, {"window", w.text(h.Rate.Per.String())}}
	default:
		pairs = []pair{{field, w.text(word)}, {"min", w.rate(h.Rate, unit)}}
	}
	if h.Kind != rules.Top && w.coin("rate") {
		pairs[0].name = "rate"
	}
	pairs = append(pairs, pair{"exit", w.text(exit)}, pair{"hold", w.text(h.Hold.String())})
	if h.Over == rules.OverDay {
		pairs = append(pairs, pair{"over", w.text("day")})
	}
	if h.CoolDown != rules.DefaultCoolDown || w.coin("cool_down") {
		pairs = append(pairs, pair{"cool_down", w.text(h.CoolDown.String())})
	}
	return w.inline(pairs)
}

func (w writer) limit(l *rules.Limit, unit rules.Unit) string {
	var limit []pair
	put := func(there bool, name string, value any) {
		if there {
			limit = append(limit, pair{name, w.text(fmt.Sprint(value))})
		}
	}
	rated, tokens := l.Quota != (rules.Quota{}), !l.Algorithm.Windowed() && l.Algorithm != rules.LeakyBucket
	if rated {
		put(!l.Algorithm.Windowed() && l.Burst != l.Rate.N || w.coin("burst"), "burst", w.count(l.Burst, unit))
		limit = append(limit, pair{"rate", w.rate(l.Rate, unit)})
		put(l.Algorithm != rules.TokenBucket || w.coin("algorithm"), "algorithm", l.Algorithm)
		if tokens && l.WarmUp == 0 && (l.Missing > 0 || w.coin("initial")) {
			initial := "0"
			if l.Burst > l.Missing {
				initial = w.count(l.Burst-l.Missing, unit)
			}
			put(true, "initial", initial)
		}
	}
	put(l.Shape || w.coin("shape"), "shape", l.Shape)
	put(l.WarmUp > 0, "warm_up", l.WarmUp)
	put(l.ColdFactor != 0 && (l.ColdFactor != 3 || w.coin("cold")), "cold_factor", l.ColdFactor)
	put(l.Calendar != "", "calendar", l.Calendar)
	put(l.Zone != "", "zone", l.Zone)
	put(l.Blocks != 0 && (l.Blocks != rules.DefaultBlocks || w.coin("blocks")), "blocks", l.Blocks)
	put(l.CountDenied, "count_denied", l.CountDenied)
	put(l.Penalty > 0, "penalty", l.Penalty)
	put(l.Scope != "", "scope", l.Scope)
	put(l.Outage != "", "when_redis_is_away", l.Outage)
	put(l.Wait > 0, "wait", l.Wait)
	put(l.Concurrency > 0, "concurrency", l.Concurrency)
	put(l.Queue > 0, "queue", l.Queue)
	if p := l.Priority; p != nil {
		var first []string
		for _, s := range p.First {
			first = append(first, w.text(s))
		}
		limit = append(limit, pair{"priority", w.inline([]pair{{"by", w.text(p.Name)}, {"first", "[" + strings.Join(first, ", ") + "]"}})})
	}
	if a := l.Serve; a != nil {
		serve := []pair{{"status", w.text(fmt.Sprint(a.Status))}, {"body", w.text(a.Body)}}
		if a.Type != defaultType {
			serve = append(serve, pair{"type", w.text(a.Type)})
		}
		limit = append(limit, pair{"serve", w.inline(serve)})
	}
	word := map[rules.Mode]string{rules.ModeLimit: "reject", rules.ModeShadow: "shadow", rules.ModeWait: "wait", rules.ModeServe: "serve"}[l.Mode]
	told := l.Mode == rules.ModeLimit || l.Mode == rules.ModeWait || l.Serve != nil
	put(!told || w.coin("on_limit"), "on_limit", word)
	return w.inline(limit)
}

func (w writer) values(x rules.Exception) string {
	var values []pair
	for _, v := range x.Values {
		value := w.text(v.Value)
		if w.coin("list") {
			value = "[" + value + "]"
		}
		name := v.Name
		if name == "id" || !strings.Contains(name, ":") && w.coin("query") {
			name = "query:" + name
		}
		values = append(values, pair{fmt.Sprintf("%q", name), value})
	}
	return w.inline(values)
}

// exceptions writes except, and allow and block in one of their two forms.
func (w writer) exceptions(r *rules.Rule) (pairs []pair) {
	var except, allow, block []string
	allowShort, blockShort := w.coin("allow"), w.coin("block")
	for _, x := range r.Except {
		fields := []pair{{"values", w.values(x)}}
		switch {
		case x.Action == rules.Allow && allowShort:
			allow = append(allow, w.values(x))
			continue
		case x.Action == rules.Block && (blockShort || allowShort): // else it would come before allow
			block = append(block, w.values(x))
			continue
		case x.Action != rules.Adjust:
			fields = append(fields, pair{"action", map[rules.Action]string{rules.Allow: "allow", rules.Block: "block"}[x.Action]})
		}
		if !x.Rate.IsZero() {
			fields = append(fields, pair{"hot", w.rate(x.Rate, r.Count)})
		}
		if x.Limit != nil {
			fields = append(fields, pair{"limit", w.limit(x.Limit, r.Count)})
		}
		except = append(except, w.inline(fields))
	}
	for _, list := range []struct {
		name  string
		items []string
	}{{"block", block}, {"except", except}, {"allow", allow}} {
		switch {
		case len(list.items) == 1 && list.name != "except" && w.coin("alone"):
			pairs = append(pairs, pair{list.name, list.items[0]})
		case len(list.items) > 0:
			pairs = append(pairs, pair{list.name, "[" + strings.Join(list.items, ", ") + "]"})
		}
	}
	return pairs
}

func (w writer) rule(r *rules.Rule) string {
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
	case rules.ByAll:
		if len(r.Hot) == 0 || w.coin("by") {
			pairs = append(pairs, pair{"by", w.text("all")})
		}
	case rules.ByEach:
		pairs = append(pairs, pair{"by", w.text("each")})
	case rules.ByNames:
		pairs = append(pairs, pair{"by", w.names(r.By.Names)})
	case rules.ByCombinations:
		if r.By.Names == nil {
			pairs = append(pairs, pair{"by", w.text("combinations")})
		} else {
			pairs = append(pairs, pair{"by", "{combinations: " + w.names(r.By.Names) + "}"})
		}
	}
	var hot []string
	for _, h := range r.Hot {
		hot = append(hot, w.threshold(h, r.Count))
	}
	switch {
	case len(hot) == 1 && w.coin("one"):
		pairs = append(pairs, pair{"hot", hot[0]})
	case len(hot) > 0:
		pairs = append(pairs, pair{"hot", "[" + strings.Join(hot, ", ") + "]"})
	}
	if r.Count != rules.Requests || len(hot) > 0 && w.coin("count") {
		pairs = append(pairs, pair{"count", w.text(r.Count.String())})
	}
	if r.Limit != nil {
		pairs = append(pairs, pair{"limit", w.limit(r.Limit, r.Count)})
	}
	pairs = append(pairs, w.exceptions(r)...)
	if r.Prefix != "" {
		pairs = append(pairs, pair{"prefix", w.text(r.Prefix)})
	}
	if r.Unread != rules.UnreadLimit || !r.Ignore && r.DependsOnBody() && w.coin("unread") {
		pairs = append(pairs, pair{"unread", w.text(r.Unread.String())})
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
