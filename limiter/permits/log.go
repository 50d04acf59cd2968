package permits

import (
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/limiter"
)

// log is what was taken: the state of package limiter's sliding log, which has
// more methods than other states.
type log interface {
	limiter.State
	// Adapt makes the log one of another rate at now, and keeps what was taken.
	Adapt(q *hotparam.Quota, now time.Duration) bool
	// Clone returns a copy, in which a schedule of those who wait can be tried.
	Clone() limiter.State
	// ReleaseNewest gives back n permits at now, those that were taken last.
	ReleaseNewest(now time.Duration, n int64)
}

// slidingLog makes logs of any rate: it is asked for once, with a rate that is valid as
// a quota, since a quota's bound on the permits of a sliding log is not one of [Rate].
var slidingLog = func() limiter.Algorithm {
	a, err := limiter.NewAlgorithm(quotaOf(hotparam.Rate{N: 1, Per: time.Second}), nil)
	if err != nil {
		panic(err)
	}
	return a
}()

func newLog(r hotparam.Rate, now time.Duration) log { return slidingLog.New(quotaOf(r), now).(log) }

func quotaOf(r hotparam.Rate) *hotparam.Quota {
	return &hotparam.Quota{Algorithm: hotparam.SlidingLog, Rate: r, Burst: r.N}
}
