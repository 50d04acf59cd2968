package redislimiter

import (
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func TestCellReply(t *testing.T) {
	for name, c := range map[string]struct {
		d    rules.Decision
		want [5]int64
	}{
		"allowed":              {rules.Decision{Allowed: true, Limit: 16, Remaining: 15, ResetAfter: 2 * time.Second}, [5]int64{0, 16, 15, -1, 2}},
		"a whole second":       {rules.Decision{Limit: 16, RetryAfter: time.Second, ResetAfter: 31 * time.Second}, [5]int64{1, 16, 0, 1, 31}},
		"rounded up":           {rules.Decision{Limit: 16, RetryAfter: 1001 * time.Millisecond, ResetAfter: 30*time.Second + 1e6}, [5]int64{1, 16, 0, 2, 31}},
		"less than 1 ms":       {rules.Decision{Limit: 16, RetryAfter: 999_999, ResetAfter: time.Second + 999_999}, [5]int64{1, 16, 0, 0, 1}},
		"never":                {rules.Decision{Limit: 16, Remaining: 16}, [5]int64{1, 16, 16, -1, 0}},
		"the longest of times": {rules.Decision{RetryAfter: math.MaxInt64, ResetAfter: math.MaxInt64}, [5]int64{1, 0, 0, 9223372037, 9223372037}},
	} {
		if got := CellReply(c.d); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
