package rules

import (
	"testing"
	"time"
)

// The text of a cause has everything that distinguishes the thresholds of one rule.
func TestCauseInWords(t *testing.T) {
	for want, c := range map[string]Cause{
		"":               {},
		"200/s":          {Rate: Rate{200, time.Second}},
		"20%/10s":        {Kind: Share, Rate: Rate{50, 10 * time.Second}, Factor: Percent(20)},
		"4x/1m":          {Kind: Jump, Rate: Rate{50, time.Minute}, Factor: NewFraction(4, 1)},
		"1.5x/s":         {Kind: Jump, Rate: Rate{50, time.Second}, Factor: NewFraction(3, 2)},
		"4x/1m over day": (&Threshold{Kind: Jump, Rate: Rate{50, time.Minute}, Factor: NewFraction(4, 1), Over: OverDay}).Cause(Bytes),
		"top 3/1m":       {Kind: Top, Rate: Rate{50, time.Minute}, Top: 3},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v is %q, want %q", c, got, want)
		}
	}
}
