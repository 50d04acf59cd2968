package middleware

import (
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// However many requests find a changed quota at once, the key's tokens stay taken: a request that
// comes second with the bucket that it read before must not make a full one.
func TestChangedQuotaKeepsTokens(t *testing.T) {
	before := &rules.Quota{Rate: rules.Rate{N: 1, Per: time.Hour}, Burst: 10}
	after := &rules.Quota{Rate: rules.Rate{N: 2, Per: time.Hour}, Burst: 10}
	clock := func() time.Duration { return time.Hour }
	spec := new(limitSpec)
	for range 200 {
		h := new(hotState)
		read := h.bucketUnder(before, spec, clock)
		for range 10 {
			if r := read.Do(clock(), limiter.Request{N: 1}); !r.Allowed {
				t.Fatal("a full bucket has 10 tokens")
			}
		}
		var requests sync.WaitGroup
		for range 4 {
			requests.Go(func() { h.changeBucket(read, spec, after, clock) })
		}
		requests.Wait()
		h.changeBucket(read, spec, after, clock) // whoever was suspended in between
		if r := h.bucketUnder(after, spec, clock).Do(clock(), limiter.Request{N: 1}); r.Allowed {
			t.Fatal("a token was taken twice")
		}
	}
}
