package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// PerSecond returns Per(n, time.Second).
func PerSecond(n int64) rules.Quota { return Per(n, time.Second) }

// Per returns the quota of a token bucket that earns n permits in each d and holds n. Set
// its Burst for another capacity, its Algorithm for another way to count.
func Per(n int64, d time.Duration) rules.Quota {
	return rules.Quota{Algorithm: rules.TokenBucket, Rate: rules.Rate{N: n, Per: d}, Burst: max(n, 0)}
}
