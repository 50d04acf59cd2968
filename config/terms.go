package config

import (
	"errors"
	"regexp"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// relative matches a threshold that is not a rate: a share of the route's counts, or a multiple
// of the key's own baseline.
var relative = regexp.MustCompile(`^\s*([0-9.]+)\s*([%xX])\s*$`)

// parseTerms reads a threshold in one word: "200/s", "20%" or "8x". The latter two may have a
// window, as in "20%/1m". Parts that the word lacks are zero. So is a share or a jump that is not
// a number, which is invalid anyway. parseTerms returns a reason if the word is not a threshold.
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
