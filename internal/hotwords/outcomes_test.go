package hotwords

import (
	"testing"

	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/rules"
)

func TestRefused(t *testing.T) {
	for want, c := range map[string]struct {
		admitted.Gauge
		mode rules.Mode
	}{
		"-":                        {admitted.Gauge{}, rules.ModeLimit},
		"12,300 of 15,000/s":       {admitted.Gauge{Rates: admitted.Rates{Passed: 2699.8, Refused: 12300.2}}, rules.ModeLimit},
		"≥ <1 of 30/s, 7/s waited": {admitted.Gauge{AtLeast: true, Rates: admitted.Rates{Passed: 20, Refused: 0.1, Served: 10, Waited: 7}}, rules.ModeWait},
		"0 of <1/s":                {admitted.Gauge{Rates: admitted.Rates{Passed: 0.2}}, rules.ModeLimit},
		"1 of 2/s (shadow)":        {admitted.Gauge{Rates: admitted.Rates{Passed: 1, Refused: 1}}, rules.ModeShadow},
	} {
		if got := Refused(c.Gauge, c.mode); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOutcomes(t *testing.T) {
	o := &rules.FleetOutcomes{Outcomes: rules.Outcomes{Passed: 13_700, Refused: 61_200, Waited: 40, Served: 100}}
	for want, h := range map[string]rules.Hot{
		"": {},
		"61,200 of 75,000 refused, 40 waited, 100 answered by on_hot":                 {Outcomes: o, Mode: rules.ModeLimit},
		"61,200 of 75,000 would have been refused, 40 waited, 100 answered by on_hot": {Outcomes: o, Mode: rules.ModeShadow},
	} {
		if got := Outcomes(&h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
