package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hotparam/hotparam/limiter"
)

// A handler that is given no more requests than it can work on, with a waiting line
// that takes up what comes at once.
func ExampleAdaptive() {
	adaptive, err := limiter.NewAdaptive(limiter.AdaptiveConfig{})
	if err != nil {
		panic(err)
	}
	line, err := limiter.NewSemaphore(limiter.SemaphoreConfig{Unfair: true})
	if err != nil {
		panic(err)
	}
	start := time.Now()
	work := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, d, err := line.Acquire(r.Context(), "work", limiter.SemaphoreAsk{
			Permits: int64(adaptive.Limit()), N: 1, Queue: 100, Within: 200 * time.Millisecond,
		})
		if err != nil || !d.Allowed {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		defer lease.Release()
		admission, d := adaptive.Acquire(time.Since(start))
		if !d.Allowed {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		outcome := limiter.Ignored // the caller went away, or work panicked
		defer func() { admission.Done(time.Since(start), outcome) }()
		work.ServeHTTP(w, r)
		switch {
		case r.Context().Err() == nil:
			outcome = limiter.Success
		case errors.Is(r.Context().Err(), context.DeadlineExceeded):
			outcome = limiter.Dropped
		}
	})

	answer := httptest.NewRecorder()
	limited.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(answer.Code, answer.Body, adaptive.Stats().Admitted)
	// Output: 200 done 1
}
