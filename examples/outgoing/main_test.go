package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// service answers at once, and records the times of its requests by host.
type service struct {
	mu    sync.Mutex
	asked map[string][]time.Time
}

func (s *service) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Host] = append(s.asked[r.URL.Host], time.Now())
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

func TestTransport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend, err := limiter.NewMemory(limiter.MemoryConfig{})
		if err != nil {
			t.Fatal(err)
		}
		pace, err := limiter.New(backend, "partner", rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 3})
		if err != nil {
			t.Fatal(err)
		}
		s := &service{asked: make(map[string][]time.Time)}
		client := &http.Client{Transport: &Transport{Limiter: pace, Next: s}}
		began := time.Now()
		var sent, late int
		var mu sync.Mutex
		get := func(url string) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("order"))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := client.Do(r)
			mu.Lock()
			defer mu.Unlock()
			var denied *limiter.DeniedError
			switch {
			case err == nil:
				_ = resp.Body.Close()
				sent++
			case errors.As(err, &denied):
				late++
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v to tell that there is no time", took)
				}
			default:
				t.Error(err)
			}
		}
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() { get("http://a.example/orders") })
		}
		all.Wait()
		get("http://b.example/orders") // has a pace of its own
		if sent != 9 || late != 4 {
			t.Errorf("%d were sent and %d too late, want 9 (8 to a, 1 to b) and 4", sent, late)
		}
		for i, at := range s.asked["a.example"] {
			want := time.Duration(max(0, i-2)) * 200 * time.Millisecond
			if at.Sub(began) != want {
				t.Errorf("request %d went out after %v, want %v", i+1, at.Sub(began), want)
			}
		}
	})
}
