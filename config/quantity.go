package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

// quantity describes how numbers of a unit are written.
type quantity struct {
	parse   func(s string) (int64, bool)
	want    string // description of a number, for messages
	rate    string // an example of a rate
	maxRate int64  // the highest rate of a threshold, per second
}

// anyUnit is the unit of a rule whose count is bad. It keeps the numbers in the intended unit
// from being reported too.
const anyUnit = rules.Units + 1

var quantities = [...]quantity{
	rules.Requests: {parseWhole, "a whole number of at least 1", `"200/s" or "60/1m"`, rules.MaxRate},
	rules.Bytes:    {ParseBytes, "a size of at least 1, such as 512KiB, 10MB or 1000", `"1MB/s" or "512KiB/10s"`, 1e12},
	rules.Millis:   {parseMillis, "a time of at least 1 ms, such as 500ms, 2s or 500", `"500ms/s" or "30s/1m"`, rules.MaxRate},
	rules.Units:    {parseWhole, "a whole number of at least 1", `"200/s" or "60/1m"`, rules.MaxRate},
	anyUnit:        {parseAny, "a number of at least 1", `"200/s" or "60/1m"`, 1e12},
}

// parseCount reads a count of at least 1.
func parseCount(s string, unit rules.Unit) (int64, bool) {
	n, ok := quantities[unit].parse(strings.TrimSpace(s))
	return n, ok && n >= 1
}

// parseRate reads N/D with N in the unit, or returns the reason why it cannot. limit is the
// highest rate per second.
func parseRate(s string, unit rules.Unit, limit int64) (rules.Rate, string) {
	count, per, found := strings.Cut(s, "/")
	if !found {
		return rules.Rate{}, "want N/D, for example " + quantities[unit].rate
	}
	n, ok := parseCount(count, unit)
	whole := "1/" + per
	if !ok && (unit == rules.Requests || unit == rules.Units) { // N may be a fraction
		whole = s
	} else if !ok {
		return rules.Rate{}, "the count must be " + quantities[unit].want
	}
	rate, err := rules.ParseRate(whole)
	if err != nil {
		return rules.Rate{}, errors.Unwrap(err).Error()
	}
	if ok {
		rate.N = n
	}
	if rate.PerSecond() > float64(limit) {
		return rules.Rate{}, fmt.Sprintf("more than %d per second", limit)
	}
	return rate, ""
}

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
		rate, reason := parseRate(s, unit, quantities[unit].maxRate)
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

// rateHint returns the hint for a text that is not a rate in the unit.
func rateHint(s string, unit rules.Unit, example string) string {
	count, _, _ := strings.Cut(s, "/")
	count = strings.TrimSpace(count)
	if unit != rules.Requests && unit != rules.Units || strings.Trim(count, "0123456789") == "" {
		return example
	}
	if _, err := base.ParseDuration(count); err == nil {
		return "times are for rules that say count: ms"
	}
	if _, ok := ParseBytes(count); ok {
		return "sizes are for rules that say count: bytes"
	}
	return example
}

// invalid replaces a number that cannot be read, or a 0 where 0 would mean that there is none.
// Package rules reports it, with the bounds.
const invalid = -1

// wholeNumber reads a whole number of at least 1. It returns invalid for any other text.
func wholeNumber(s string) int {
	i, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || i < 1 {
		return invalid
	}
	return i
}

func parseWhole(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// parseMillis reads whole milliseconds, as a number or as a duration.
func parseMillis(s string) (int64, bool) {
	if n, ok := parseWhole(s); ok {
		return n, true
	}
	d, err := base.ParseDuration(s)
	return d.Milliseconds(), err == nil && d%time.Millisecond == 0
}

func parseAny(s string) (int64, bool) {
	if n, ok := ParseBytes(s); ok {
		return n, true
	}
	return parseMillis(s)
}

var sizes = []struct {
	suffix string
	bytes  int64
}{
	{"KIB", 1 << 10}, {"MIB", 1 << 20}, {"GIB", 1 << 30}, {"TIB", 1 << 40},
	{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
}

// ParseBytes reads a size in the form of the file, in whole units: "64MB", "256MiB"
// or "1048576". It returns false for any other text.
func ParseBytes(s string) (int64, bool) {
	number, each := strings.ToUpper(strings.TrimSpace(s)), int64(1)
	for _, size := range sizes {
		if n, found := strings.CutSuffix(number, size.suffix); found {
			number, each = n, size.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	return n * each, err == nil && n >= 0 && n <= math.MaxInt64/each
}
