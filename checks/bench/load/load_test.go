package load

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// every returns n requests to a server, one for each interval.
func every(interval time.Duration, n int, url string) (requests []Request) {
	for i := range n {
		requests = append(requests, Request{Due: time.Duration(i) * interval, URL: url})
	}
	return requests
}

func start(t *testing.T, connections *atomic.Int64, h http.HandlerFunc) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func TestRequestsAreSentWhenTheyAreDueOverFewConnections(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	url := start(t, &connections, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Content-Type") == "application/json" && r.ContentLength == 2 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	c := NewClient(5*time.Second, 3)
	defer c.Close()
	requests := every(time.Millisecond/2, 200, url)
	for i := 0; i < len(requests); i += 4 {
		requests[i].Method, requests[i].Body = http.MethodPost, "{}"
	}
	begin := time.Now()
	statuses := make(map[int]int)
	for i, s := range c.Send(t.Context(), begin, requests) {
		statuses[s.Status]++
		if s.Late < 0 || s.Took < s.Late {
			t.Errorf("request %d was sent after %v and took %v", i, s.Late, s.Took)
		}
	}
	if statuses[200] != 150 || statuses[429] != 50 {
		t.Errorf("statuses %v", statuses)
	}
	if took := time.Since(begin); took < 99*time.Millisecond {
		t.Errorf("200 requests at 2,000 a second took %v", took)
	}
	if n := connections.Load(); n > 3 {
		t.Errorf("%d connections, want 3 at most", n)
	}
}

// The wait behind a slow request counts as the waiting request's own time.
func TestWaitForAConnectionCounts(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	var connections, served atomic.Int64
	url := start(t, &connections, func(http.ResponseWriter, *http.Request) {
		if served.Add(1) == 1 {
			time.Sleep(stall)
		}
	})
	c := NewClient(5*time.Second, 1)
	defer c.Close()
	waited := 0
	for _, s := range c.Send(t.Context(), time.Now(), every(time.Millisecond, 300, url)) {
		if s.Took > stall/4 {
			waited++
		}
	}
	if waited < 150-1 { // 200 were due in that time; those of the first 150 ms wait
		t.Errorf("%d requests waited", waited)
	}
}

func TestRequestsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	url := start(t, &connections, func(http.ResponseWriter, *http.Request) {
		cancel()
		panic(http.ErrAbortHandler)
	})
	c := NewClient(time.Second, 2)
	defer c.Close()
	begin := time.Now()
	for _, s := range c.Send(ctx, begin, every(10*time.Millisecond, 1000, url)) {
		if s.Status != 0 || s.Took != time.Second {
			t.Fatalf("%+v", s)
		}
	}
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
