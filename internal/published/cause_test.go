package published

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// The text of a cause has everything that distinguishes the thresholds of one rule.
func TestCauseInWords(t *testing.T) {
	for want, c := range map[string]Cause{
		"":               {},
		"200/s":          {Rate: rules.Rate{N: 200, Per: time.Second}},
		"20%/10s":        {Kind: rules.Share, Rate: rules.Rate{N: 50, Per: 10 * time.Second}, Factor: rules.Percent(20)},
		"4x/1m":          {Kind: rules.Jump, Rate: rules.Rate{N: 50, Per: time.Minute}, Factor: rules.NewFraction(4, 1)},
		"1.5x/s":         {Kind: rules.Jump, Rate: rules.Rate{N: 50, Per: time.Second}, Factor: rules.NewFraction(3, 2)},
		"4x/1m over day": CauseOf(&rules.Threshold{Kind: rules.Jump, Rate: rules.Rate{N: 50, Per: time.Minute}, Factor: rules.NewFraction(4, 1), Over: rules.OverDay}, rules.Bytes),
		"top 3/1m":       {Kind: rules.Top, Rate: rules.Rate{N: 50, Per: time.Minute}, Top: 3},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}
