package config

import (
	"slices"

	"github.com/hotparam/hotparam"
)

var limitSection = section{
	name: "limit", prefix: "limit.",
	fields:  []string{"rate", "burst", "scope", "on_limit", "algorithm"},
	example: "for example limit: 50/s, or limit: {rate: 50/s, burst: 100}",
}

// limit reads a limit; nil when there is none, or a bad one.
func (r *ruleReader) limit(n *node, unit hotparam.Unit) *hotparam.Limit {
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
	if !v.has("rate") {
		r.report(n.at, limitSection.example, "limit.rate is missing")
	}
	l := &hotparam.Limit{Mode: hotparam.ModeLimit}
	if s, ok := r.scalar(v.get("rate"), what); ok {
		rate, reason := parseRate(s, unit, hotparam.MaxRate)
		if reason != "" {
			r.report(v.get("rate").at, rateHint(s, unit, "50/s is 50 per second, 5/1m is 5 per minute"), "%s %s: %s", what, quote(s), reason)
		}
		l.Rate, l.Burst = rate, rate.N
	}
	r.burst(v, l, unit)
	r.buildable(v.get("scope"), "limit.scope", "instance")
	r.buildable(v.get("algorithm"), "limit.algorithm", "token_bucket")
	if r.buildable(v.get("on_limit"), "limit.on_limit", "reject", "shadow") == "shadow" {
		l.Mode = hotparam.ModeShadow
	}
	if l.Rate.IsZero() {
		return nil
	}
	return l
}

// fills tells whether a bucket fills within 2^61 ns, 73 years: the bound of
// package limiter, told here with a place.
func fills(rate hotparam.Rate, burst int64) bool {
	interval := (int64(rate.Per)-1)/rate.N + 1
	return burst <= 1<<61/interval
}

// burst reads the size of the bucket; by default it holds what the rate gives
// in its time.
func (r *ruleReader) burst(v values, l *hotparam.Limit, unit hotparam.Unit) {
	at, n := v.get("rate"), v.get("burst")
	if s, ok := r.scalar(n, "limit.burst"); ok {
		burst, ok := parseCount(s, unit)
		if !ok {
			r.report(n.at, rateHint(s, unit, "burst is how much passes at once; the count of limit.rate if it is left out"), "limit.burst %s: want %s", quote(s), quantities[unit].want)
			return
		}
		l.Burst, at = burst, n
	}
	if !l.Rate.IsZero() && !fills(l.Rate, l.Burst) {
		r.report(at.at, "lower the burst or raise the rate", "limit: a bucket of %d tokens at %s takes over 73 years to fill", l.Burst, l.Rate)
	}
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
