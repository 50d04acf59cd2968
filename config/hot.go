package config

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam"
)

var hotSection = section{
	name: "hot", prefix: "hot.",
	fields:  []string{"rate", "exit", "hold"},
	example: "for example hot: {rate: 200/s, exit: 80%, hold: 10s}",
}

// hot reads a threshold; nil when there is none, or a bad one.
func (r *ruleReader) hot(n *node) *hotparam.Threshold {
	v := r.section(n, hotSection)
	if v == nil {
		return nil
	}
	if !v.has("rate") {
		r.report(n.at, hotSection.example, "hot.rate is missing")
	}
	rate := r.hotRate(v.get("rate"))
	t := hotparam.NewThreshold(rate)
	r.exit(v.get("exit"), t)
	if s, ok := r.scalar(v.get("hold"), "hot.hold"); ok {
		hold, err := time.ParseDuration(strings.TrimSpace(s))
		if err != nil || hold < 0 {
			r.report(v.get("hold").at, "hold is the least time for which a key stays hot; 10s if it is left out", "hot.hold %s: want a duration, for example 10s or 1m", quote(s))
		}
		t.Hold = hold
	}
	if rate.IsZero() {
		return nil
	}
	return t
}

// relative is a threshold that is not a rate: a share of the route's requests,
// or a multiple of the key's own baseline.
var relative = regexp.MustCompile(`^\s*[0-9.]+\s*(%|[xX])\s*$`)

func (r *ruleReader) hotRate(n *node) hotparam.Rate {
	s, ok := r.scalar(n, "hot.rate")
	if !ok {
		return hotparam.Rate{}
	}
	if relative.MatchString(s) {
		r.report(n.at, "what works today: an absolute rate, such as 200/s", "hot.rate %s is not built yet", quote(s))
		return hotparam.Rate{}
	}
	rate, reason := parseThreshold(s)
	if reason != "" {
		r.report(n.at, "200/s is 200 within a second, 60/1m is 60 within a minute", "hot.rate %s: %s", quote(s), reason)
	}
	return rate
}

// parseThreshold reads a rate that can be a threshold, or tells why it is none.
func parseThreshold(s string) (hotparam.Rate, string) {
	rate, err := hotparam.ParseRate(s)
	switch {
	case err != nil:
		return rate, errors.Unwrap(err).Error()
	case rate.Per < hotparam.MinWindow || rate.Per > hotparam.MaxWindow:
		return hotparam.Rate{}, "the window must be 1s to 1h"
	}
	return rate, ""
}

// exit reads the count at which a key cools: a share of the threshold, a rate
// over the same window, or a count.
func (r *ruleReader) exit(n *node, t *hotparam.Threshold) {
	s, ok := r.scalar(n, "hot.exit")
	if !ok {
		return
	}
	s = strings.TrimSpace(s)
	const forms = "a share of the threshold (80%), a rate over the same window (160/s) or a count (160)"
	if percent, found := strings.CutSuffix(s, "%"); found {
		share, ok := parsePercent(strings.TrimSpace(percent))
		if !ok {
			r.report(n.at, forms, "hot.exit %s: want 1%% to 100%%", quote(s))
			return
		}
		t.Exit = hotparam.ExitCount(t.Rate.N, share)
		return
	}
	count, err := strconv.ParseInt(s, 10, 64)
	if strings.Contains(s, "/") {
		var rate hotparam.Rate
		if rate, err = hotparam.ParseRate(s); err != nil {
			r.report(n.at, forms, "hot.exit %s: %v", quote(s), errors.Unwrap(err))
			return
		}
		if t.Rate.Per != 0 && rate.Per != t.Rate.Per {
			r.report(n.at, forms, "hot.exit %s: the window must be that of hot.rate %s", quote(s), t.Rate)
			return
		}
		count = rate.N
	}
	switch {
	case err != nil || count < 1:
		r.report(n.at, forms, "hot.exit %s: want a share, a rate or a whole number of at least 1", quote(s))
	case t.Rate.N != 0 && count > t.Rate.N:
		r.report(n.at, "a key would be hot and cool at once: take at most hot.rate", "hot.exit %s is above hot.rate %s", quote(s), t.Rate)
	default:
		t.Exit = count
	}
}

// parsePercent reads 1 to 100 as a share, fractions of percents included.
func parsePercent(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" { // ParseFloat reads more than people write
		return 0, false
	}
	percent, err := strconv.ParseFloat(s, 64)
	return percent / 100, err == nil && 1 <= percent && percent <= 100
}
