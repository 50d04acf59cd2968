package config

import (
	"errors"
	"fmt"
	"regexp"
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
	compared, window, windowed := strings.Cut(s, "/")
	parts := relative.FindStringSubmatch(compared)
	if parts == nil {
		rate, reason := parseWindowed(s, unit)
		return hotparam.Threshold{Rate: rate}, reason
	}
	t := hotparam.Threshold{Kind: hotparam.Jump}
	per := int64(1)
	if parts[2] == "%" {
		t.Kind, per = hotparam.Share, 100
	}
	factor, err := hotparam.ParseFraction(parts[1], per)
	switch t.Factor = factor; {
	case errors.Is(err, hotparam.ErrDigits):
		return t, err.Error()
	case t.Kind == hotparam.Share && (err != nil || factor.IsZero() || factor.Cmp(1) > 0):
		return t, "a share must be above 0% and at most 100%"
	case t.Kind == hotparam.Jump && (err != nil || factor.Cmp(1) <= 0 || factor.Cmp(hotparam.MaxFactor) > 0):
		return t, fmt.Sprintf("a jump must be above 1x and at most %dx", int(hotparam.MaxFactor))
	}
	if windowed {
		rate, err := hotparam.ParseRate("1/" + window)
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
