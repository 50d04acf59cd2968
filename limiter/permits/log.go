package permits

import (
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// takeLog holds the takes of an account. It is the state of package limiter's sliding log, which
// has more methods than other states.
type takeLog interface {
	limiter.State
	// Adapt changes the rate of the log at now, and keeps the takes.
	Adapt(q *rules.Quota, now time.Duration) bool
	// Clone returns a copy, in which the takes of waiters can be planned.
	Clone() limiter.State
	// ReleaseNewest returns, at now, the n permits that were taken last.
	ReleaseNewest(now time.Duration, n int64)
}

// slidingLog returns the algorithm that makes logs of any rate. It is created with a rate that
// is valid as a quota, since a quota bounds the permits of a sliding log and a [Rate] does
// not.
var slidingLog = func() limiter.Algorithm {
	a, err := limiter.NewAlgorithm(quotaOf(rules.Rate{N: 1, Per: time.Second}), nil)
	if err != nil {
		panic(err)
	}
	return a
}()

func newLog(r rules.Rate, now time.Duration) takeLog {
	return slidingLog.New(quotaOf(r), now).(takeLog)
}

func quotaOf(r rules.Rate) *rules.Quota {
	return &rules.Quota{Algorithm: rules.SlidingLog, Rate: r, Burst: r.N}
}
