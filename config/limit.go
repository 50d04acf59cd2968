package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

var limitSection = section{
	name: "limit", prefix: "limit.",
	fields: settings{
		{"rate", shown(schemaRate()), "", "50/s, 5/1m, 2MB/s"},
		{"burst", shown(schemaText()), "", "How much passes at once. Default: the count of rate"},
		{"algorithm", shown(schema{"anyOf": []schema{schemaChoice(algorithms...), {"type": "string", "pattern": "^x_"}}}), "", "Default: " + string(rules.TokenBucket) + "; x_… names one of your own"},
		{"initial", shown(schemaText()), "", "What a new bucket holds. Default: burst"},
		{"shape", shown(schemaFlag()), "", "Requests that pass are spaced evenly"},
		{"warm_up", shown(schemaDuration()), "", "How long the rate rises after a quiet time"},
		{"cold_factor", shown(schemaText()), "", "The rate begins at 1/cold_factor with warm_up"},
		{"calendar", shown(schemaChoice(calendars...)), "", "Windows of the calendar, for algorithm: fixed_window"},
		{"zone", shown(schemaText()), "", "Time zone of calendar, such as Europe/Berlin"},
		{"blocks", shown(schemaWhole(1, 1<<31)), "", "Parts of a window of algorithm: sliding_blocks"},
		{"count_denied", shown(schemaFlag()), "", "Refused requests count, too"},
		{"penalty", shown(schemaDuration()), "", "How long a key is locked after a refusal"},
		{"scope", shown(schemaChoice(string(rules.ScopeInstance), string(rules.ScopeShare), string(rules.ScopeExact))), "", "Whose requests share the limit. Default: instance"},
		{"when_redis_is_away", shown(schemaChoice(string(rules.OutageLocal), string(rules.OutageOpen), string(rules.OutageClosed))), "", "For scope: exact. Default: local"},
		{"on_limit", shown(schemaChoice("reject", "wait", "serve", "shadow")), "", "Decision for requests over the limit. Default: reject"},
		{"wait", shown(schemaDuration()), "", "The longest that a request waits"},
		{"concurrency", shown(schemaWhole(1, rules.MaxConcurrency)), "", "How many requests are served at a time"},
		{"queue", shown(schemaWhole(1, rules.MaxQueue)), "", fmt.Sprintf("How many more may wait for concurrency. Default: %d", rules.DefaultQueue)},
		{"priority", shown(prioritySection.fields.schema(prioritySection.fields.names()...)), "", "Which values of a parameter come first"},
		{"serve", shown(serveSection.fields.schema()), "", "The response of on_limit: serve"},
	},
	example: "for example limit: 50/s, or limit: {rate: 50/s, burst: 100}",
}

// limit reads a limit. It returns nil if there is none.
func (r *ruleReader) limit(n *node, unit rules.Unit) *rules.Limit {
	if n == nil {
		return nil
	}
	what, v := "limit", values{"rate": n}
	if n.kind != scalarKind {
		if v = r.section(n, limitSection); v == nil {
			return nil
		}
		what = "limit.rate"
	}
	l := &rules.Limit{}
	r.rateOf(v, l, what, unit)
	r.shapeOf(v, l)
	r.scopeAndOutage(v, l)
	r.overLimit(v, l)
	if l.Quota != (rules.Quota{}) {
		l.Quota = r.complete(v, l.Quota, unit)
	}
	return l
}

// rateOf reads the rate, the burst and the concurrency of a limit.
func (r *ruleReader) rateOf(v values, l *rules.Limit, what string, unit rules.Unit) {
	if s, ok := r.scalar(v.get("rate"), what); ok {
		rate, reason := parseRate(s, unit, rules.MaxRate)
		if reason != "" {
			r.reject(v.get("rate"), rateHint(s, unit, "50/s is 50 per second, 5/1m is 5 per minute"), "%s %s: %s", what, quote(s), reason)
		}
		l.Rate = rate
	}
	n := v.get("burst")
	if s, ok := r.scalar(n, "limit.burst"); ok {
		if l.Burst, ok = parseCount(s, unit); !ok {
			r.reject(n, rateHint(s, unit, "burst is how much passes at once; the count of limit.rate if it is left out"), "limit.burst %s: want %s", quote(s), quantities[unit].want)
		}
	}
	n = v.get("initial")
	if s, ok := r.scalar(n, "limit.initial"); ok && strings.TrimSpace(s) != "0" {
		if _, ok := parseCount(s, unit); !ok {
			r.reject(n, "initial is what a new bucket holds; its burst if it is left out", "limit.initial %s: want 0 or %s", quote(s), quantities[unit].want)
		}
	}
	l.Concurrency = r.positiveInt(v.get("concurrency"), "limit.concurrency")
	l.Queue = r.positiveInt(v.get("queue"), "limit.queue")
}

var algorithms = func() (words []string) {
	for _, a := range rules.Algorithms {
		words = append(words, string(a))
	}
	return words
}()

// calendars are the calendar periods, the shortest first.
var calendars = func() (words []string) {
	for c := range rules.CalendarPeriods {
		words = append(words, string(c))
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Compare(rules.CalendarPeriods[rules.Calendar(a)], rules.CalendarPeriods[rules.Calendar(b)])
	})
	return words
}()

// shapeOf reads the algorithm of a limit and its settings.
func (r *ruleReader) shapeOf(v values, l *rules.Limit) {
	if n := v.get("algorithm"); n != nil && n.kind == scalarKind && rules.Algorithm(n.text).Custom() {
		l.Algorithm = rules.Algorithm(n.text)
	} else if s, ok := r.choice(n, "limit.algorithm", algorithms...); ok {
		l.Algorithm = rules.Algorithm(s)
	}
	l.Shape = r.flag(v.get("shape"), "limit.shape")
	l.WarmUp = r.atLeastMilli(v.get("warm_up"), "limit.warm_up", "30s")
	if s, ok := r.scalar(v.get("cold_factor"), "limit.cold_factor"); ok {
		factor, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || factor == 0 {
			factor = invalid
		}
		l.ColdFactor = factor
	}
	if s, ok := r.choice(v.get("calendar"), "limit.calendar", calendars...); ok {
		l.Calendar = rules.Calendar(s)
	}
	l.Zone, _ = r.scalar(v.get("zone"), "limit.zone")
	l.Blocks = r.positiveInt(v.get("blocks"), "limit.blocks")
	l.CountDenied = r.flag(v.get("count_denied"), "limit.count_denied")
	l.Penalty = r.atLeastMilli(v.get("penalty"), "limit.penalty", "30s")
}

// scopeAndOutage reads the scope of the limit: whose requests share it.
func (r *ruleReader) scopeAndOutage(v values, l *rules.Limit) {
	l.Scope = rules.Scope(r.buildable(v.get("scope"), "limit.scope", string(rules.ScopeInstance), string(rules.ScopeShare), string(rules.ScopeExact)))
	if l.Scope == rules.ScopeInstance {
		l.Scope = ""
	}
	away, _ := r.choice(v.get("when_redis_is_away"), "limit.when_redis_is_away", string(rules.OutageLocal), string(rules.OutageOpen), string(rules.OutageClosed))
	l.Outage = rules.OutagePolicy(away)
}

// overLimit reads what happens to requests over the limit.
func (r *ruleReader) overLimit(v values, l *rules.Limit) {
	l.Wait = r.atLeastMilli(v.get("wait"), "limit.wait", "2s")
	word, _ := r.choice(v.get("on_limit"), "limit.on_limit", "reject", "wait", "serve", "shadow")
	switch {
	case word == "shadow":
		l.Mode = rules.ModeShadow
	case word == "serve", word == "" && v.has("serve"):
		l.Mode = rules.ModeServe
	case word == "wait", word == "" && v.has("wait"):
		l.Mode = rules.ModeWait
	default:
		l.Mode = rules.ModeLimit
	}
	l.Priority = r.priority(v.get("priority"))
	l.Serve = r.answer(v.get("serve"))
}

// complete fills in the defaults, and the fields that depend on them.
func (r *ruleReader) complete(v values, q rules.Quota, unit rules.Unit) rules.Quota {
	burst := q.Burst
	q = q.WithDefaults()
	if burst != 0 {
		q.Burst = burst // valid or not
	}
	if s, ok := r.scalar(v.get("initial"), "limit.initial"); ok {
		initial, _ := parseCount(s, unit) // 0 is not a count, but is returned as 0
		q.Missing = q.Burst - initial
	}
	return q
}

// positiveInt reads a whole number of at least 1. It returns 0 if there is none, and invalid if
// it is bad.
func (d *decoder) positiveInt(n *node, what string) int {
	s, ok := d.scalar(n, what)
	if !ok {
		return 0
	}
	return wholeNumber(s)
}

// atLeastMilli reads a time of at least a millisecond. It returns 0 if there is none, and
// invalid if it is shorter.
func (d *decoder) atLeastMilli(n *node, what, example string) time.Duration {
	if n == nil {
		return 0
	}
	t := d.duration(n, what, "for example "+example, 0)
	if t < time.Millisecond && !n.bad {
		return invalid
	}
	return t
}

// buildable reads one of a few words, and reports words that are not built yet.
func (r *ruleReader) buildable(n *node, what string, words ...string) string {
	if unbuilt := unbuiltWords[what]; n != nil && n.kind == scalarKind && slices.Contains(unbuilt.words, n.text) {
		r.reject(n, unbuilt.hint, "%s %q is not built yet", what, n.text)
		return ""
	}
	s, _ := r.choice(n, what, words...)
	return s
}
