package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// relative is what a threshold says that is not a rate: a share of the route's
// counts, or a multiple of the key's own baseline.
var relative = regexp.MustCompile(`^\s*([0-9.]+)\s*([%xX])\s*$`)

// parseTerms reads a threshold in one word: "200/s", "20%" or "8x", the latter
// two with or without a window as in "20%/1m". What the word does not say is
// zero, as is a share or a jump that is no number: it is invalid by itself. A reason
// is returned if it is no threshold.
func parseTerms(s string, unit rules.Unit) (rules.Threshold, string) {
	compared, window, windowed := strings.Cut(s, "/")
	parts := relative.FindStringSubmatch(compared)
	if parts == nil {
		rate, reason := parseRate(s, unit, quantities[unit].most)
		return rules.Threshold{Rate: rate}, reason
	}
	t := rules.Threshold{Kind: rules.Jump}
	per := int64(1)
	if parts[2] == "%" {
		t.Kind, per = rules.Share, 100
	}
	factor, err := rules.ParseFraction(parts[1], per)
	if t.Factor = factor; errors.Is(err, rules.ErrDigits) {
		return t, err.Error()
	}
	if windowed {
		rate, err := rules.ParseRate("1/" + window)
		if err != nil {
			return t, errors.Unwrap(err).Error()
		}
		t.Rate.Per = rate.Per
	}
	return t, ""
}
