package hotwords

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/limiter/fleet"
	"github.com/hotparam/hotparam/rules"
)

// Limit describes a limit of the rule, or of one of its exceptions.
func Limit(r *rules.Rule, l *rules.Limit) string {
	unit := r.Count
	var parts []string
	switch {
	case l.Burst == rules.Unlimited:
		parts = append(parts, "limit none")
	case !l.Rate.IsZero():
		parts = append(parts, quotaWords(&l.Quota, unit)...)
	}
	switch {
	case l.Cancel:
		parts = append(parts, "as many at a time as leave the others as fast as before, running ones canceled")
	case l.Concurrency == rules.AutoConcurrency:
		parts = append(parts, "as many at a time as leave the others as fast as before")
	case l.Concurrency > 0:
		parts = append(parts, fmt.Sprintf("%d at a time", l.Concurrency))
	}
	switch l.Mode {
	case rules.ModeShadow:
		parts = append(parts, "shadow")
	case rules.ModeWait:
		wait := "wait up to " + Span(l.Wait)
		if l.Queue > 0 {
			wait += fmt.Sprintf(" in a queue of %d", l.Queue)
		}
		parts = append(parts, wait)
	case rules.ModeServe:
		answer := "serve what code gives"
		if l.Serve != nil {
			answer = fmt.Sprintf("serve %d", l.Serve.Status)
		}
		parts = append(parts, answer)
	}
	if p := l.Priority; p != nil {
		parts = append(parts, fmt.Sprintf("first %s %s", nameWords(rules.Param{Source: p.Source, Name: p.Name}), strings.Join(p.First, ", ")))
	}
	return strings.Join(append(parts, scopeWords(r, l)...), ", ")
}

// quotaWords describes a quota and its algorithm, one part per property.
func quotaWords(q *rules.Quota, unit rules.Unit) []string {
	parts := []string{"limit " + Rate(q.Rate, unit)}
	if q.Algorithm.Windowed() {
		words := strings.ReplaceAll(string(q.Algorithm), "_", " ")
		switch {
		case q.Calendar != "":
			words += " of a calendar " + string(q.Calendar)
			if q.Zone != "" {
				words += " in " + q.Zone
			}
		case q.Blocks > 0:
			words = fmt.Sprintf("%d %s", q.Blocks, words)
		}
		parts = append(parts, words)
	} else {
		parts = append(parts, "burst "+Count(q.Burst, unit))
		if q.Algorithm != "" && q.Algorithm != rules.TokenBucket {
			parts = append(parts, strings.ReplaceAll(string(q.Algorithm), "_", " "))
		}
	}
	for _, extra := range []struct {
		there bool
		words string
	}{
		{q.Missing > 0, "initially " + Count(q.Burst-q.Missing, unit)},
		{q.Shape, "shaped"},
		{q.WarmUp > 0, "warms up in " + Span(q.WarmUp) + " from 1/" + strconv.FormatFloat(q.ColdFactor, 'g', 4, 64)},
		{q.CountDenied, "refused ones count"},
		{q.Penalty > 0, "locked for " + Span(q.Penalty) + " after a refusal"},
	} {
		if extra.there {
			parts = append(parts, extra.words)
		}
	}
	return parts
}

// scopeWords describes which requests share the limit, who decides on them, and why.
func scopeWords(r *rules.Rule, l *rules.Limit) []string {
	if l.Burst == rules.Unlimited && l.Concurrency == 0 {
		return nil
	}
	scope := r.ScopeOf(l)
	switch scope {
	case rules.ScopeShare:
		return []string{"shared by all instances"}
	case rules.ScopeFleet, rules.ScopeExact:
		how := "each request asks Redis"
		if scope == rules.ScopeFleet {
			how = fitWords(fleet.FitOf(r, l))
		}
		words := []string{"over all instances (" + how + ")"}
		if l.Outage != "" {
			words = append(words, string(l.Outage)+" while Redis is unavailable")
		}
		return words
	}
	if reason := r.WhyNotFleet(l); l.Scope == "" && len(r.Hot) > 0 && reason != "" {
		return []string{"on each instance, because scope: fleet " + reason}
	}
	return []string{"on each instance"}
}

// fitWords describes who decides on the requests of a limit with scope: fleet.
func fitWords(fit fleet.Fit) string {
	switch {
	case fit.Instances == 0:
		return "each request asks Redis: " + fit.Reason
	case fit.Reason == "":
		return "they hold permits in advance"
	}
	return fmt.Sprintf("up to %d hold permits in advance; with more, each request asks Redis: %s", fit.Instances, fit.Reason)
}
