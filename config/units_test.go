package config

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Rates and other durations may be given in days and weeks, and a rate may have a fraction.
func TestDaysWeeksAndFractions(t *testing.T) {
	file, err := Parse("f", []byte(`{namespace: n, rules: [
		{id: a, match: {route: "GET /a"}, by: [q], hot: {rate: 0.5/s, hold: 1d}, limit: {rate: 10/1w, wait: 0.002d}},
		{id: b, match: {route: "GET /b"}, by: [q], limit: {rate: 10/1d12h, algorithm: sliding_log, penalty: 1w}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const day = 24 * time.Hour
	a, b := file.Rules.Rules[0], file.Rules.Rules[1]
	if got, want := a.Hot[0].Rate, (rules.Rate{N: 1, Per: 2 * time.Second}); got != want || a.Hot[0].Hold != day {
		t.Errorf("hot at %v, held for %v", got, a.Hot[0].Hold)
	}
	if a.Limit.Rate != (rules.Rate{N: 10, Per: 7 * day}) || a.Limit.Wait != 172800*time.Millisecond {
		t.Errorf("%+v", a.Limit)
	}
	if b.Limit.Rate != (rules.Rate{N: 10, Per: 36 * time.Hour}) || b.Limit.Penalty != 7*day {
		t.Errorf("%+v", b.Limit)
	}
}
