package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/hotparam/hotparam/limiter/adaptive"
	"github.com/hotparam/hotparam/limiter/semaphore"
)

// A handler gets no more requests than it can work on, and a waiting line absorbs bursts.
func Example() {
	limit, err := adaptive.New(adaptive.Config{})
	if err != nil {
		panic(err)
	}
	line := semaphore.New(semaphore.Config{Unfair: true})
	start := time.Now()
	work := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") })
	limited := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lease, d, err := line.Acquire(r.Context(), "work", semaphore.Request{
			Permits: int64(limit.Limit()), Queue: 100, Within: 200 * time.Millisecond,
		})
		if err != nil || !d.Allowed {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		defer lease.Release()
		admission, d := limit.Acquire(time.Since(start))
		if !d.Allowed {
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return
		}
		outcome := adaptive.Ignored // the caller left, or work panicked
		defer func() { admission.Done(time.Since(start), outcome) }()
		work.ServeHTTP(w, r)
		switch {
		case r.Context().Err() == nil:
			outcome = adaptive.Success
		case errors.Is(r.Context().Err(), context.DeadlineExceeded):
			outcome = adaptive.Dropped
		}
	})

	answer := httptest.NewRecorder()
	limited.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Println(answer.Code, answer.Body, limit.Stats().Admitted)
	// Output: 200 done 1
}

// A limit that follows latency, and also falls while the processors are busier than 80%.
func ExampleCPU() {
	cpu, err := adaptive.NewCPU(adaptive.CPUConfig{})
	if err != nil { // only Linux is supported
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = cpu.Run(ctx) }()

	limit, err := adaptive.New(adaptive.Config{CPU: cpu.Usage})
	if err != nil {
		panic(err)
	}
	_, d := limit.Acquire(0)
	stop()
	<-done
	fmt.Println(d.Allowed)
	// Output: true
}
