package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam"
)

// relative is what a threshold says that is not a rate: a share of the route's
// counts, or a multiple of the key's own baseline.
var relative = regexp.MustCompile(`^\s*([0-9.]+)\s*([%xX])\s*$`)

// parseTerms reads a threshold in one word: "200/s", "20%" or "8x", the latter
// two with or without a window as in "20%/1m". What the word does not say is
// zero. A reason tells why it is no threshold.
func parseTerms(s string, unit hotparam.Unit) (hotparam.Threshold, string) {
	compared, per, windowed := strings.Cut(s, "/")
	parts := relative.FindStringSubmatch(compared)
	if parts == nil {
		rate, reason := parseWindowed(s, unit)
		return hotparam.Threshold{Rate: rate}, reason
	}
	t := hotparam.Threshold{Kind: hotparam.Jump}
	factor, err := strconv.ParseFloat(parts[1], 64)
	if parts[2] == "%" {
		t.Kind, factor = hotparam.Share, factor/100
	}
	switch t.Factor = factor; {
	case t.Kind == hotparam.Share && (err != nil || factor <= 0 || factor > 1):
		return t, "a share must be above 0% and at most 100%"
	case t.Kind == hotparam.Jump && (err != nil || factor <= 1 || factor > hotparam.MaxFactor):
		return t, fmt.Sprintf("a jump must be above 1x and at most %dx", int(hotparam.MaxFactor))
	}
	if windowed {
		rate, err := hotparam.ParseRate("1/" + per)
		switch {
		case err != nil:
			return t, errors.Unwrap(err).Error()
		case !isWindow(rate.Per):
			return t, badWindow
		}
		t.Rate.Per = rate.Per
	}
	return t, ""
}

// parsePercent reads 1 to 100 as a share, fractions of percents included.
func parsePercent(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.") != "" { // ParseFloat reads more than people write
		return 0, false
	}
	percent, err := strconv.ParseFloat(s, 64)
	return percent / 100, err == nil && 1 <= percent && percent <= 100
}
