// Command outgoing calls a service no faster than agreed. It limits its own requests, so
// that the service need not refuse them.
//
//	go run ./examples/outgoing
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Transport sends requests at the pace of a limiter, separately for each host. A request
// waits for its turn until its context's deadline at most. If the turn would come later, it
// fails at once and is not sent.
type Transport struct {
	Limiter *limiter.Limiter
	Next    http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := t.Limiter.Wait(r.Context(), r.URL.Host); err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, fmt.Errorf("not sent: %w", err)
	}
	return t.Next.RoundTrip(r)
}

func main() {
	began := time.Now()
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		fmt.Printf("%5d ms  the service gets a request\n", time.Since(began).Milliseconds())
	}))
	backend, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		log.Fatal(err)
	}
	// Three at once, then five a second.
	pace, err := limiter.New(backend, "partner", rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 3})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &Transport{Limiter: pace, Next: http.DefaultTransport}}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
			defer cancel()
			call(ctx, client, service.URL)
		})
	}
	all.Wait()
	service.Close()
}

func call(ctx context.Context, client *http.Client, url string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		log.Fatal(err)
	}
	resp, err := client.Do(r)
	var denied *limiter.DeniedError
	switch {
	case errors.As(err, &denied):
		fmt.Printf("          a caller gives up: its turn would come after its deadline, %v too late\n", denied.RetryAfter.Round(time.Millisecond))
	case err != nil:
		log.Print(err)
	default:
		_ = resp.Body.Close()
	}
}
