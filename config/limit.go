package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// limitFields are the fields of a limit.
type limitFields struct {
	rules.Limit
	unit    rules.Unit // the unit of the rule
	onLimit string
	initial *int64 // nil if there is none
}

// limitOf returns the value for a limit in the unit of the rule.
func limitOf(to **rules.Limit, rule *rules.Rule) fieldBinding {
	return as(to, ref("limit"), func(d *decoder, n *fileNode, _ string) *rules.Limit { return d.limit(n, rule.Count) })
}

// settings returns the fields of the section.
func (l *limitFields) settings() settings {
	return settings{
		{"rate", l.rateValue(), "", "50/s, 5/1m, 2MB/s"},
		{"burst", as(&l.Burst, schemaText, l.readBurst), "", "How much passes at once. Default: the count of rate"},
		{"algorithm", as(&l.Algorithm, anyOf(schemaChoice(algorithms...), formOf(schema{"type": "string", "pattern": "^x_"})), (*decoder).algorithm), "", "Default: " + string(rules.TokenBucket) + "; x_… names one of your own"},
		{"initial", as(&l.initial, schemaText, l.readInitial), "", "What a new bucket holds. Default: burst"},
		{"shape", flag(&l.Shape), "", "Requests that pass are spaced evenly"},
		{"warm_up", milli(&l.WarmUp, "30s"), "", "How long the rate rises after a quiet time"},
		{"cold_factor", as(&l.ColdFactor, schemaText, (*decoder).factor), "", "The rate begins at 1/cold_factor with warm_up"},
		{"calendar", choice(&l.Calendar, calendars()...), "", "Windows of the calendar, for algorithm: fixed_window"},
		{"zone", plain(&l.Zone, schemaText), "", "Time zone of calendar, such as Europe/Berlin"},
		{"blocks", positive(&l.Blocks, 1<<31), "", "Parts of a window of algorithm: sliding_blocks"},
		{"count_denied", flag(&l.CountDenied), "", "Refused requests count, too"},
		{"penalty", milli(&l.Penalty, "30s"), "", "How long a key is locked after a refusal"},
		{"scope", as(&l.Scope, schemaChoice(scopes...), (*decoder).scope), "", "Whose requests share the limit. Default: fleet for hot keys, else instance"},
		{"when_redis_is_away", choice(&l.Outage, rules.OutageLocal, rules.OutageOpen, rules.OutageClosed), "", "Decision while Redis is unavailable, for scope: fleet and exact. Default: local"},
		{"on_limit", choice(&l.onLimit, "reject", "wait", "serve", "shadow"), "", "Decision for requests over the limit. Default: reject"},
		{"wait", milli(&l.Wait, "2s"), "", "The longest that a request waits"},
		{"concurrency", orAuto(&l.Concurrency, positive(&l.Concurrency, rules.MaxConcurrency)), "", "How many requests are served at a time; auto goes with hot: {cost: auto}"},
		{"cancel", flag(&l.Cancel), "", "Requests of a held key that run without a permit are canceled, with concurrency: auto"},
		{"queue", positive(&l.Queue, rules.MaxQueue), "", fmt.Sprintf("How many more may wait for concurrency. Default: %d", rules.DefaultQueue)},
		{"priority", as(&l.Priority, prioritySettings(new(rules.Priority)).form("by", "first"), (*decoder).priority), "", "Which values of a parameter come first"},
		{"serve", as(&l.Serve, serveSettings(new(rules.Response)).form(), (*decoder).response), "", "The response of on_limit: serve"},
	}
}

// limit reads a limit of a rule in this unit. It returns nil if the node is none.
func (d *decoder) limit(n *fileNode, unit rules.Unit) *rules.Limit {
	l := limitFields{unit: unit}
	var v values
	if n.kind == scalarKind {
		l.rateValue().read(d, n, "limit")
	} else if v = d.settings(n, "limit", "for example limit: 50/s, or limit: {rate: 50/s, burst: 100}", l.settings()); v == nil {
		return nil
	}
	switch {
	case l.onLimit == "shadow":
		l.Mode = rules.ModeShadow
	case l.onLimit == "serve", l.onLimit == "" && v.has("serve"):
		l.Mode = rules.ModeServe
	case l.onLimit == "wait", l.onLimit == "" && v.has("wait"):
		l.Mode = rules.ModeWait
	default:
		l.Mode = rules.ModeLimit
	}
	if l.Quota != (rules.Quota{}) {
		l.complete()
	}
	return &l.Limit
}

// complete fills in the defaults of the quota, and the fields that depend on them.
func (l *limitFields) complete() {
	burst := l.Burst
	l.Quota = l.Quota.WithDefaults()
	if burst != 0 {
		l.Burst = burst // valid or not
	}
	if l.initial != nil {
		l.Missing = l.Burst - *l.initial
	}
}

// orAuto returns a number's value that may also be auto.
func orAuto(to *int, number fieldBinding) fieldBinding {
	return as(to, anyOf(number.form, schemaChoice("auto")), func(d *decoder, n *fileNode, what string) int {
		if n.kind == scalarKind && n.text == "auto" {
			return rules.AutoConcurrency
		}
		number.read(d, n, what)
		return *to
	})
}

func (l *limitFields) rateValue() fieldBinding {
	return as(&l.Rate, schemaRate, func(d *decoder, n *fileNode, what string) (rate rules.Rate) {
		if s, ok := d.scalar(n, what); ok {
			var reason string
			if rate, reason = parseRate(s, l.unit, rules.MaxRate); reason != "" {
				d.reject(n, rateHint(s, l.unit, "50/s is 50 per second, 5/1m is 5 per minute"), "%s %s: %s", what, quote(s), reason)
			}
		}
		return rate
	})
}

func (l *limitFields) readBurst(d *decoder, n *fileNode, what string) (burst int64) {
	if s, ok := d.scalar(n, what); ok {
		if burst, ok = parseCount(s, l.unit); !ok {
			d.reject(n, rateHint(s, l.unit, "burst is how much passes at once; the count of limit.rate if it is left out"), "%s %s: want %s", what, quote(s), quantities[l.unit].want)
		}
	}
	return burst
}

func (l *limitFields) readInitial(d *decoder, n *fileNode, what string) *int64 {
	s, ok := d.scalar(n, what)
	if !ok {
		return nil
	}
	initial, ok := parseCount(s, l.unit) // 0 is not a count, but is returned as 0
	if !ok && strings.TrimSpace(s) != "0" {
		d.reject(n, "initial is what a new bucket holds; its burst if it is left out", "%s %s: want 0 or %s", what, quote(s), quantities[l.unit].want)
	}
	return &initial
}

var algorithms = func() (words []string) {
	for _, a := range rules.Algorithms {
		words = append(words, string(a))
	}
	return words
}()

func (d *decoder) algorithm(n *fileNode, what string) rules.Algorithm {
	if a := rules.Algorithm(n.text); a.Custom() {
		return a
	}
	s, _ := d.choice(n, what, algorithms...)
	return rules.Algorithm(s)
}

// factor reads a number. It returns invalid for any other text.
func (d *decoder) factor(n *fileNode, what string) float64 {
	s, ok := d.scalar(n, what)
	factor, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if ok && (err != nil || factor == 0) {
		return invalid
	}
	return factor
}

// calendars returns the calendar periods, the shortest first.
func calendars() []rules.Calendar {
	return slices.SortedFunc(maps.Keys(rules.CalendarPeriods), func(a, b rules.Calendar) int {
		return cmp.Compare(rules.CalendarPeriods[a], rules.CalendarPeriods[b])
	})
}

var scopes = []string{string(rules.ScopeInstance), string(rules.ScopeShare), string(rules.ScopeFleet), string(rules.ScopeExact)}

// scope reads whose requests share the limit.
func (d *decoder) scope(n *fileNode, what string) rules.Scope {
	if n.text == "cluster" { // the name that other limiters have for it
		d.rejectChoice(n, didYouMean(string(rules.ScopeFleet)), what, scopes)
		return ""
	}
	s, _ := d.choice(n, what, scopes...)
	return rules.Scope(s)
}
