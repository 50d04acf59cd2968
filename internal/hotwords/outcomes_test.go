package hotwords

import (
	"testing"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

func TestRefused(t *testing.T) {
	for want, g := range map[string]admitted.Gauge{
		"-":                        {},
		"12,300 of 15,000/s":       {Rates: admitted.Rates{Passed: 2699.8, Refused: 12300.2}},
		"≥ <1 of 30/s, 7/s waited": {AtLeast: true, Rates: admitted.Rates{Passed: 20, Refused: 0.1, Served: 10, Waited: 7}},
		"0 of <1/s":                {Rates: admitted.Rates{Passed: 0.2}},
	} {
		if got := Refused(g); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	o := &published.FleetOutcomes{Outcomes: published.Outcomes{Passed: 13_700, Refused: 61_200, Waited: 40, Served: 100}}
	for want, h := range map[string]published.Hot{
		"": {},
		"61,200 of 75,000 refused, 40 waited, 100 answered by on_hot":                 {Outcomes: o, Mode: rules.ModeLimit},
		"61,200 of 75,000 would have been refused, 40 waited, 100 answered by on_hot": {Outcomes: o, Mode: rules.ModeShadow},
	} {
		if got := Outcomes(&h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
