package permits_test

import (
	"strconv"
	"testing"

	"github.com/hotparam/hotparam/limiter/limitertest"
	"github.com/hotparam/hotparam/limiter/permits"
)

func TestPermitsConform(t *testing.T) {
	limitertest.TestPermits(t, limitertest.PermitsConfig{
		New: func(_ *testing.T, clients int) []permits.RateLimiter {
			p := permits.NewShared()
			all := make([]permits.RateLimiter, clients)
			for i := range all {
				all[i] = p(strconv.Itoa(i))
			}
			return all
		},
		Synctest: true,
	})
}
