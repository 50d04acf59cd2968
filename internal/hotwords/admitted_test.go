package hotwords

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/rules"
)

func TestOnHotWords(t *testing.T) {
	for want, o := range map[string]admitted.OnHot{
		"":                   {},
		"3400/s from memory": {Stored: 3400.2},
		"0.4/s from memory, 21/s joined, 9.9/s alone (set-cookie)": {Stored: 0.4, Joined: 21, Alone: 9.9, AloneFor: "set-cookie"},
		"4.0/s alone": {Alone: 4},
	} {
		if got := OnHot(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAdmittedWords(t *testing.T) {
	rate := func(n int64, per time.Duration) rules.Rate { return rules.Rate{N: n, Per: per} }
	for want, c := range map[string]struct {
		g    admitted.Gauge
		unit rules.Unit
	}{
		"-":                            {},
		"4980/s of 5000/s":             {admitted.Gauge{PerSecond: 4979.6, Limits: 1, Limit: rate(5000, time.Second)}, rules.Requests},
		"14940/s of 3 × 5000/s":        {admitted.Gauge{PerSecond: 14940, Limits: 3, Limit: rate(5000, time.Second)}, rules.Requests},
		"≥ 9/1m of 10/1m":              {admitted.Gauge{PerSecond: 0.15, Limits: 1, AtLeast: true, Limit: rate(10, time.Minute)}, rules.Requests},
		"1.2 MB/10s of 2MB/10s":        {admitted.Gauge{PerSecond: 123_456, Limits: 1, Limit: rate(2e6, 10*time.Second)}, rules.Bytes},
		"35 units/s of 2 × 50 units/s": {admitted.Gauge{PerSecond: 35, Limits: 2, Limit: rate(50, time.Second)}, rules.Units},
	} {
		if got := Admitted(c.g, c.unit); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
