package gateways

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/bench"
)

func startLoad(t *testing.T, rate, connections int, h http.HandlerFunc) *load {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	requests := slices.Concat(cold.gets()[:3], refused.gets())
	l, err := openLoad(t.Context(), server.Listener.Addr().String(), rate, connections, requests)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.closeConnections)
	return l
}

func TestLoadSendsEachRequestInTurnOverFewConnections(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refused" {
			w.WriteHeader(http.StatusTooManyRequests)
		}
		_, _ = w.Write([]byte("ok"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	l, err := openLoad(t.Context(), server.Listener.Addr().String(), 2000, 3, slices.Concat(cold.gets()[:3], refused.gets()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.closeConnections)
	begin := time.Now()
	for range 2 {
		s, err := l.run(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.took) != 100 || len(s.late) != 100 || s.failed != 0 || s.statuses[200] != 75 || s.statuses[429] != 25 {
			t.Errorf("%d answers, %d sent, %d failed, statuses %v", len(s.took), len(s.late), s.failed, s.statuses)
		}
	}
	if took := time.Since(begin); took < 99*time.Millisecond {
		t.Errorf("200 requests at 2,000 a second took %v", took)
	}
	if n := connections.Load(); n != 3 {
		t.Errorf("%d connections, want 3", n)
	}
}

// The wait behind a slow request counts as the waiting request's own time.
func TestLoadCountsTheWaitForAnAnswer(t *testing.T) {
	t.Parallel()
	const stall = 200 * time.Millisecond
	var served atomic.Int64
	l := startLoad(t, 1000, 1, func(http.ResponseWriter, *http.Request) {
		if served.Add(1) == 1 {
			time.Sleep(stall)
		}
	})
	s, err := l.run(t.Context(), 300)
	if err != nil {
		t.Fatal(err)
	}
	waited := 0
	for _, took := range s.took {
		if took > stall/4 {
			waited++
		}
	}
	if waited < 150-1 { // 200 were due in that time; those of the first 150 ms wait
		t.Errorf("%d requests waited; p50 is %v", waited, bench.Percentile(s.took, 50))
	}
}

func TestLoadReplacesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	l := startLoad(t, 1000, 2, func(w http.ResponseWriter, _ *http.Request) {
		switch served.Add(1) % 10 {
		case 5:
			panic(http.ErrAbortHandler) // no answer
		case 9:
			w.Header().Set("Connection", "close")
		}
	})
	s, err := l.run(t.Context(), 200)
	if err != nil {
		t.Fatal(err)
	}
	if s.failed == 0 || s.statuses[200] == 0 || s.failed+len(s.took) != 200 {
		t.Errorf("%d failed, statuses %v", s.failed, s.statuses)
	}
}

func TestLoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := startLoad(t, 100, 2, func(http.ResponseWriter, *http.Request) { cancel() })
	begin := time.Now()
	if _, err := l.run(ctx, 6000); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}
