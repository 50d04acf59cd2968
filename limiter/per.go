package limiter

import (
	"time"

	"github.com/hotparam/hotparam"
)

// PerSecond returns the quota of a token bucket that earns n permits a second and holds n.
// Set its Burst for another capacity, its Algorithm for another way to count.
func PerSecond(n int64) hotparam.Quota { return per(n, time.Second) }

// PerMinute returns the quota of a token bucket that earns n permits a minute and holds n.
func PerMinute(n int64) hotparam.Quota { return per(n, time.Minute) }

// PerHour returns the quota of a token bucket that earns n permits an hour and holds n.
func PerHour(n int64) hotparam.Quota { return per(n, time.Hour) }

func per(n int64, d time.Duration) hotparam.Quota {
	return hotparam.Quota{Algorithm: hotparam.TokenBucket, Rate: hotparam.Rate{N: n, Per: d}, Burst: max(n, 0)}
}
