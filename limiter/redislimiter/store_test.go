package redislimiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

type namedQuota struct {
	name  string
	quota *rules.Quota
}

// everyLocking is a quota with a penalty.
var everyLocking = namedQuota{"locking", quota(rules.Quota{Rate: rate(10, time.Second), Penalty: time.Second})}

// everyQuota has a quota of 10 for each algorithm.
var everyQuota = []namedQuota{
	{"token bucket", quota(rules.Quota{Rate: rate(10, time.Second)})},
	{"gcra", quota(rules.Quota{Algorithm: rules.GCRA, Rate: rate(10, time.Second)})},
	{"policing", quota(rules.Quota{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second)})},
	{"shaping", quota(rules.Quota{Algorithm: rules.LeakyBucket, Rate: rate(10, time.Second), Shape: true})},
	{"warm-up", quota(rules.Quota{Rate: rate(10, time.Second), WarmUp: 5 * time.Second})},
	{"fixed window", quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, time.Second)})},
	{"calendar", quota(rules.Quota{Algorithm: rules.FixedWindow, Rate: rate(10, time.Minute), Calendar: rules.CalendarMinute})},
	{"sliding log", quota(rules.Quota{Algorithm: rules.SlidingLog, Rate: rate(10, time.Second)})},
	{"sliding blocks", quota(rules.Quota{Algorithm: rules.SlidingBlocks, Rate: rate(10, time.Second)})},
}

// Exactly the limit is admitted, and RetryAfter is exact to the microsecond. Package limitertest
// checks everything else about the algorithms; see conformance_test.go.
func TestEveryAlgorithm(t *testing.T) {
	client := storeClient(t, testenv.Redis(t).Addr(), nil)
	clock := handAt(1_700_000_000 * time.Second)
	s := storeOf(t, client, clock.of)
	for _, every := range everyQuota {
		t.Run(every.name, func(t *testing.T) {
			denied := take(t, s, every.quota, every.name, 1)
			n := int64(0)
			for ; denied.Allowed; denied = take(t, s, every.quota, every.name, 1) {
				if n++; denied.Taken != 1 || denied.Remaining > 10-n || denied.Limit != 10 {
					t.Fatalf("take %d: %+v", n, denied)
				}
			}
			if n > 10 || n < 10 && every.quota.WarmUp == 0 || denied.RetryAfter <= 0 {
				t.Fatalf("denied after %d: %+v", n, denied)
			}
			clock.pass(denied.RetryAfter - time.Microsecond)
			if r := take(t, s, every.quota, every.name, 1); r.Allowed || r.RetryAfter != time.Microsecond {
				t.Fatalf("too early: %+v", r)
			}
			clock.pass(time.Microsecond)
			if r := take(t, s, every.quota, every.name, 1); !r.Allowed {
				t.Fatalf("in time: %+v", r)
			}
		})
	}
}
