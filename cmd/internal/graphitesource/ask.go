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
	// maxFiltered is the longest window of a rule whose keys Graphite filters, since the whole
	// window of a key is read when the key first appears.
	maxFiltered = time.Minute
	// maxNamed bounds the keys that are requested by name.
	maxNamed = 64
)

// watch is a request for the counts of one rule.
type watch struct {
	number int    // number of the rule
	prefix string // name of each of its counters without the key
	// above is the value that a point must exceed for Graphite to send its series. Series that
	// are not sent have no hot key: see [filter].
	above int64
	// span is the number of points that the rule's thresholds cover.
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

// filter returns the highest value that each point of a key can have while the key stays below
// every exit of its rule. A window of W holds W/step points. If none of them is above
// (exit-1)/(W/step), they add up to at most exit-1. The exit is at most the threshold. So a key
// that Graphite leaves out is not hot, and cools if it was.
//
// filter returns 0, so that all counts are sent, for rules that compare keys with the counts of
// others or with their own earlier ones. It also returns 0 for windows that are too long to be
// read again each time.
func (c *Config) filter(rule *rules.Rule) int64 {
	above := int64(math.MaxInt64)
	for i := range rule.Hot {
		t := &rule.Hot[i]
		if t.Kind == rules.Share || t.Kind == rules.Jump || t.Rate.Per > maxFiltered {
			return 0
		}
		exit := t.ExitCount(t.Rate.N)
		for j := range rule.Except {
			if x := &rule.Except[j]; t.Kind == rules.FixedRate && x.Rate.Per == t.Rate.Per && !x.Rate.IsZero() {
				exit = min(exit, t.ExitCount(x.Rate.N))
			}
		}
		above = min(above, (max(1, exit)-1)/int64(t.Rate.Per/c.Step))
	}
	return above
}

// form returns a request for all watches. from is a time in Graphite's syntax. named holds
// encoded keys, by watch, whose series are sent whatever their values.
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

// isLiteral reports whether Graphite takes the encoded key literally.
func isLiteral(key []byte) bool {
	return len(key) > 0 && !slices.ContainsFunc(key, func(c byte) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '='
	})
}
