package config

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
)

var limitSection = section{
	name: "limit", prefix: "limit.",
	fields: []string{
		"rate", "burst", "algorithm", "initial", "shape", "warm_up", "cold_factor", "calendar", "zone", "blocks", "count_denied", "penalty",
		"scope", "when_redis_is_away", "on_limit", "wait", "concurrency", "queue", "priority", "serve",
	},
	example: "for example limit: 50/s, or limit: {rate: 50/s, burst: 100}",
}

// limit reads a limit; nil when there is none, or a bad one.
func (r *ruleReader) limit(n *node, unit hotparam.Unit) *hotparam.Limit {
	if n == nil {
		return nil
	}
	before := len(r.problems)
	what, v := "limit", values{"rate": n}
	if n.kind != scalarKind {
		if v = r.section(n, limitSection); v == nil {
			return nil
		}
		what = "limit.rate"
	}
	if !v.has("rate") && !v.has("concurrency") {
		r.report(n.at, limitSection.example, "limit.rate is missing")
	}
	l := &hotparam.Limit{}
	r.rateOf(v, l, what, unit)
	r.shapeOf(v, l)
	r.whose(v, l)
	r.over(v, l)
	if len(r.problems) > before {
		return nil
	}
	if l.Quota != (hotparam.Quota{}) {
		l.Quota = r.complete(v, l.Quota, unit)
	}
	r.check(n, v, l, unit)
	return l
}

// rateOf reads how much may pass.
func (r *ruleReader) rateOf(v values, l *hotparam.Limit, what string, unit hotparam.Unit) {
	if s, ok := r.scalar(v.get("rate"), what); ok {
		rate, reason := parseRate(s, unit, hotparam.MaxRate)
		if reason != "" {
			r.report(v.get("rate").at, rateHint(s, unit, "50/s is 50 per second, 5/1m is 5 per minute"), "%s %s: %s", what, quote(s), reason)
		}
		l.Rate = rate
	}
	n := v.get("burst")
	if s, ok := r.scalar(n, "limit.burst"); ok {
		if l.Burst, ok = parseCount(s, unit); !ok {
			r.report(n.at, rateHint(s, unit, "burst is how much passes at once; the count of limit.rate if it is left out"), "limit.burst %s: want %s", quote(s), quantities[unit].want)
		}
	}
	n = v.get("initial")
	if s, ok := r.scalar(n, "limit.initial"); ok && strings.TrimSpace(s) != "0" {
		if _, ok := parseCount(s, unit); !ok {
			r.report(n.at, "initial is what a new bucket holds; its burst if it is left out", "limit.initial %s: want 0 or %s", quote(s), quantities[unit].want)
		}
	}
	l.Concurrency = r.whole(v.get("concurrency"), "limit.concurrency", "concurrency: 8 serves eight requests at a time", hotparam.MaxConcurrency)
	l.Queue = r.whole(v.get("queue"), "limit.queue", "queue: 100 lets a hundred requests wait", hotparam.MaxQueue)
}

var algorithms = func() (words []string) {
	for _, a := range hotparam.Algorithms {
		words = append(words, string(a))
	}
	return words
}()

// calendars are the natural periods, the shortest first.
var calendars = func() (words []string) {
	for c := range hotparam.CalendarPeriods {
		words = append(words, string(c))
	}
	slices.SortFunc(words, func(a, b string) int {
		return cmp.Compare(hotparam.CalendarPeriods[hotparam.Calendar(a)], hotparam.CalendarPeriods[hotparam.Calendar(b)])
	})
	return words
}()

// shapeOf reads how that is reckoned.
func (r *ruleReader) shapeOf(v values, l *hotparam.Limit) {
	if n := v.get("algorithm"); n != nil && n.kind == scalarKind && hotparam.Algorithm(n.text).Custom() {
		l.Algorithm = hotparam.Algorithm(n.text)
	} else if s, ok := r.choice(n, "limit.algorithm", algorithms...); ok {
		l.Algorithm = hotparam.Algorithm(s)
	}
	l.Shape = r.flag(v.get("shape"), "limit.shape")
	l.WarmUp = r.span(v.get("warm_up"), "limit.warm_up", "30s", time.Millisecond, hotparam.MaxWarmUp)
	if s, ok := r.scalar(v.get("cold_factor"), "limit.cold_factor"); ok {
		factor, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(factor > 1 && factor <= hotparam.MaxColdFactor) {
			r.report(v.get("cold_factor").at, "3 begins with a third of the rate", "limit.cold_factor %s: want a number above 1, at most %d", quote(s), hotparam.MaxColdFactor)
		}
		l.ColdFactor = factor
	}
	if s, ok := r.choice(v.get("calendar"), "limit.calendar", calendars...); ok {
		l.Calendar = hotparam.Calendar(s)
	}
	l.Zone, _ = r.scalar(v.get("zone"), "limit.zone")
	l.Blocks = r.whole(v.get("blocks"), "limit.blocks", "blocks: 10 counts a minute in blocks of 6s", hotparam.MaxBlocks)
	l.CountDenied = r.flag(v.get("count_denied"), "limit.count_denied")
	l.Penalty = r.span(v.get("penalty"), "limit.penalty", "30s", time.Millisecond, hotparam.MaxPenalty)
}

// whose reads whose requests share the limit.
func (r *ruleReader) whose(v values, l *hotparam.Limit) {
	l.Scope = hotparam.Scope(r.buildable(v.get("scope"), "limit.scope", string(hotparam.ScopeInstance), string(hotparam.ScopeShare), string(hotparam.ScopeExact)))
	if l.Scope == hotparam.ScopeInstance {
		l.Scope = ""
	}
	away, _ := r.choice(v.get("when_redis_is_away"), "limit.when_redis_is_away", string(hotparam.AwayLocal), string(hotparam.AwayOpen), string(hotparam.AwayClosed))
	l.Away = hotparam.Away(away)
}

// over reads what becomes of requests over the limit.
func (r *ruleReader) over(v values, l *hotparam.Limit) {
	l.Wait = r.span(v.get("wait"), "limit.wait", "2s", time.Millisecond, hotparam.MaxWait)
	word, _ := r.choice(v.get("on_limit"), "limit.on_limit", "reject", "wait", "serve", "shadow")
	switch {
	case word == "shadow":
		l.Mode = hotparam.ModeShadow
	case word == "serve", word == "" && v.has("serve"):
		l.Mode = hotparam.ModeServe
	case word == "wait", word == "" && v.has("wait"):
		l.Mode = hotparam.ModeWait
	default:
		l.Mode = hotparam.ModeLimit
	}
	l.Priority = r.priority(v.get("priority"))
	l.Serve = r.answer(v.get("serve"))
}

// complete fills in the defaults, and what is told by them.
func (r *ruleReader) complete(v values, q hotparam.Quota, unit hotparam.Unit) hotparam.Quota {
	burst := q.Burst
	q = q.WithDefaults()
	if burst != 0 {
		q.Burst = burst // good or bad
	}
	if s, ok := r.scalar(v.get("initial"), "limit.initial"); ok {
		initial, _ := parseCount(s, unit) // 0 is read as none
		q.Missing = q.Burst - initial
	}
	return q
}

// check reports what the fields are together, at the field that is to blame.
func (r *ruleReader) check(n *node, v values, l *hotparam.Limit, unit hotparam.Unit) {
	if unit == anyUnit {
		unit = hotparam.Requests
	}
	var bad *hotparam.LimitError
	if !errors.As(l.Validate(unit), &bad) {
		return
	}
	field, _, _ := strings.Cut(bad.Field, ".")
	at := n.at
	for _, name := range []string{"rate", field} {
		if v.get(name) != nil {
			at = v.get(name).at
		}
	}
	r.report(at, cmp.Or(limitHints[field], limitSection.example), "%v", bad)
}

// limitHints tell what to do where a field does not go with the others.
var limitHints = map[string]string{
	"rate":               "sliding_blocks counts any number, to a part of the window",
	"priority":           prioritySection.example,
	"scope":              "for example {rate: 50/s, scope: share}",
	"penalty":            "for example {rate: 50/s, penalty: 30s}",
	"burst":              "lower the burst or raise the rate",
	"initial":            "for example {rate: 50/s, burst: 100, initial: 10}",
	"wait":               "for example {rate: 50/s, wait: 2s}",
	"shape":              "for example {algorithm: leaky_bucket, shape: true, rate: 50/s, wait: 2s}",
	"calendar":           "for example {algorithm: fixed_window, rate: 1000/1d, calendar: day}; a month is 30d, a year 365d",
	"zone":               "for example {algorithm: fixed_window, rate: 1000/1d, calendar: day, zone: Europe/Berlin}",
	"queue":              "for example {concurrency: 8, queue: 100, wait: 2s}",
	"when_redis_is_away": "for example {rate: 50/s, scope: exact, when_redis_is_away: local}",
	"serve":              "for example {rate: 50/s, on_limit: serve, serve: {status: 200, body: \"[]\"}}",
	"warm_up":            "for example {rate: 50/s, warm_up: 30s}",
	"cold_factor":        "for example {rate: 50/s, warm_up: 30s, cold_factor: 3}",
	"blocks":             "for example {algorithm: sliding_blocks, rate: 100/1m, blocks: 12}",
	"count_denied":       "for example {algorithm: sliding_log, rate: 5/1m, count_denied: true}",
}

// whole reads a whole number of at least 1; 0 if there is none.
func (d *decoder) whole(n *node, what, hint string, most int) int {
	s, ok := d.scalar(n, what)
	if !ok {
		return 0
	}
	i, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || i < 1 || i > most {
		d.report(n.at, hint, "%s %s: want a whole number of 1 to %d", what, quote(s), most)
	}
	return i
}

// buildable reads one of a few words, and knows those that are not built yet.
func (r *ruleReader) buildable(n *node, what string, words ...string) string {
	if unbuilt := unbuiltWords[what]; n != nil && n.kind == scalarKind && slices.Contains(unbuilt.words, n.text) {
		r.report(n.at, unbuilt.hint, "%s %q is not built yet", what, n.text)
		return ""
	}
	s, _ := r.choice(n, what, words...)
	return s
}
