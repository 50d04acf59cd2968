package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// TestSlidingLogMemory checks D1: memory is O(max), whatever is counted, and next to nothing when
// idle.
func TestSlidingLogMemory(t *testing.T) {
	const n = 100
	q := windowQuota(rules.SlidingLog, n, time.Hour)
	q.CountDenied = true
	s := newWindowState(t, q, 0).(*window[logFrame])
	for i := range 100 * n {
		s.Do(time.Duration(i)*time.Millisecond, Request{N: 1})
		s.Do(time.Duration(i)*time.Millisecond, Request{Kind: Charge, N: 1})
	}
	if got := cap(s.slots.all); got > 2*n {
		t.Errorf("room for %d entries, want at most %d", got, 2*n)
	}
	if r := s.Do(20*time.Minute, Request{Kind: Peek, N: 1}); r.Allowed {
		t.Errorf("%+v", r)
	}
	if s.FreshAfter(3 * time.Hour); cap(s.slots.all) > minRoom {
		t.Errorf("idle, room for %d entries", cap(s.slots.all))
	}
}

// TestSlidingLogTrim checks that entries dropped early would have made no difference, even if
// reservations are returned.
func TestSlidingLogTrim(t *testing.T) {
	const n = 100
	s := newWindowState(t, windowQuota(rules.SlidingLog, n, 500*sec), 0)
	for i := range time.Duration(n) {
		s.Do(i*sec, Request{N: 1})
	}
	runWindowSteps(t, s, []windowStep{
		{100 * sec, Request{Kind: Reserve, N: 1, Within: 400 * sec}, allowedResult(n, 0, 900*sec).took(1, 500*sec).after(400 * sec)},
		{101 * sec, Request{Kind: Charge, N: 1}, allowedResult(n, 0, 899*sec).took(1, 101*sec)},
		{101 * sec, Request{N: 1}, deniedResult(n, 0, 401*sec, 899*sec)},
		{101 * sec, Request{Kind: Return, N: 1, Mark: int64(500 * sec)}, allowedResult(n, 0, 500*sec)},
		{101 * sec, Request{N: 1}, deniedResult(n, 0, 400*sec, 500*sec)},
		{501 * sec, Request{N: 1}, allowedResult(n, 0, 500*sec).took(1, 501*sec)},
	})
	if got := s.(*window[logFrame]).slots.len(); got > n {
		t.Errorf("%d entries", got)
	}
}
