package graphitesource

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

const (
	// maxFiltered is the longest window of a rule whose keys Graphite filters: when a key
	// first appears, its whole window has to be read.
	maxFiltered = time.Minute
	// maxNamed bounds the keys that are asked for by name.
	maxNamed = 64
)

// watch is a request for the counts of one rule.
type watch struct {
	number int    // of the rule
	prefix string // all of its counters' names but the key
	// above is what a point must exceed for its series to be sent. A series that is not sent
	// has no hot key: see [filter].
	above int64
	// span is how many points the thresholds of the rule cover.
	span int64
}

// watches returns the watches of the rules that have thresholds.
func (c *Config) watches() []watch {
	var all []watch
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		if len(rule.Hot) == 0 {
			continue
		}
		w := watch{number: i, prefix: string(wire.AppendKey([]byte(rule.CountPrefix(c.Rules.Namespace)), c.Encoding, nil)), above: c.filter(rule)}
		for _, t := range rule.Hot {
			w.span = max(w.span, int64(t.Rate.Per/c.Step))
		}
		all = append(all, w)
	}
	return all
}

// filter returns the highest value that each point of a key can have while the key stays
// below every exit of its rule. A window of W holds W/step points. If none of them is above
// (exit-1)/(W/step), they add up to at most exit-1. The exit is at most the threshold, so a
// key that Graphite leaves out is not hot, and one that was cools.
//
// filter returns 0, so that all counts are sent, where keys are compared with the counts of
// others or with their own earlier ones, and for windows that are too long to be read again
// each time.
func (c *Config) filter(rule *rules.Rule) int64 {
	above := int64(math.MaxInt64)
	for i := range rule.Hot {
		t := &rule.Hot[i]
		if t.Kind == rules.Share || t.Kind == rules.Jump || t.Rate.Per > maxFiltered {
			return 0
		}
		exit := t.ExitCount(t.Rate.N)
		for j := range rule.Except {
			if x := &rule.Except[j]; t.Kind == rules.Absolute && x.Rate.Per == t.Rate.Per && !x.Rate.IsZero() {
				exit = min(exit, t.ExitCount(x.Rate.N))
			}
		}
		above = min(above, (max(1, exit)-1)/int64(t.Rate.Per/c.Step))
	}
	return above
}

// form is a request for all that is watched. from is a time as Graphite reads it.
// named are encoded keys, by watch, that are to be sent whatever they count.
func (c *Config) form(watches []watch, from string, named [][]string) url.Values {
	form := url.Values{"format": {"json"}, "noCache": {"1"}, "from": {from}}
	if c.Heartbeat != NoHeartbeat {
		form.Add("target", c.Heartbeat)
	}
	for i := range watches {
		w := &watches[i]
		above := float64(w.above)
		if c.Rate {
			above /= c.Step.Seconds()
		}
		form.Add("target", "maximumAbove("+c.series(w.prefix+"*")+","+strconv.FormatFloat(above, 'f', -1, 64)+")")
		if named != nil && len(named[i]) > 0 {
			form.Add("target", c.series(w.prefix+"{"+strings.Join(named[i], ",")+"}"))
		}
	}
	return form
}

// series returns the name of the series of a counter.
func (c *Config) series(counter string) string {
	return strings.Replace(c.Series, placeholder, counter, 1)
}

const placeholder = "{name}"

// isLiteral reports whether Graphite takes an encoded key literally.
func isLiteral(key []byte) bool {
	return len(key) > 0 && !slices.ContainsFunc(key, func(c byte) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '='
	})
}
