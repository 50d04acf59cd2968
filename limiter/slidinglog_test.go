package limiter

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

func TestSlidingLog(t *testing.T) {
	start := 1000 * sec
	for name, steps := range map[string][]windowStep{
		"D1: a permit is back exactly a window after it was taken": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start + 4*sec, Request{N: 2}, allowedResult(3, 0, 10*sec).took(2, start+4*sec)},
			{start + 5*sec, Request{N: 1}, deniedResult(3, 0, 5*sec, 9*sec)},
			{start + 5*sec, Request{N: 2}, deniedResult(3, 0, 9*sec, 9*sec)},
			{start + 10*sec - 1, Request{N: 1}, deniedResult(3, 0, 1, 4*sec+1)},
			{start + 10*sec, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, start+10*sec)},
			{start + 14*sec, Request{Kind: Peek, N: 2}, allowedResult(3, 2, 6*sec)},
		},
		"D1: two at one instant both count": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start, Request{N: 1}, allowedResult(3, 1, 10*sec).took(1, start)},
			{start, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, start)},
			{start, Request{N: 1}, deniedResult(3, 0, 10*sec, 10*sec)},
		},
		"D1: a denial is not recorded": {
			{start, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start)},
			{start + 9*sec, Request{N: 1}, deniedResult(3, 0, sec, sec)},
			{start + 10*sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start+10*sec)},
		},
		"G: AllowAtMost": {
			{start, Request{Kind: AtMost, N: 2}, allowedResult(3, 1, 10*sec).took(2, start)},
			{start + sec, Request{Kind: AtMost, N: 1 << 62, Keep: 1}, deniedResult(3, 1, 9*sec, 9*sec)},
			{start + sec, Request{Kind: AtMost, N: 1 << 62}, allowedResult(3, 0, 10*sec).took(1, start+sec)},
			{start + sec, Request{Kind: AtMost, N: 1}, deniedResult(3, 0, 9*sec, 10*sec)},
		},
		"G: what is reserved counts at once": {
			{start, Request{N: 2}, allowedResult(3, 1, 10*sec).took(2, start)},
			{start + sec, Request{Kind: Reserve, N: 2, Within: 9 * sec}, allowedResult(3, 0, 19*sec).took(2, start+10*sec).after(9 * sec)},
			{start + sec, Request{N: 1}, deniedResult(3, 0, 9*sec, 19*sec)},
			{start + 10*sec, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, start+10*sec)},
		},
		"G: a cancelled reservation is as if it had not been": {
			{start, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start)},
			{start, Request{Kind: Reserve, N: 1, Within: 10 * sec}, allowedResult(3, 0, 20*sec).took(1, start+10*sec).after(10 * sec)},
			{start + sec, Request{Kind: Return, N: 1, Mark: int64(start + 10*sec)}, allowedResult(3, 0, 9*sec)},
			{start + 10*sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start+10*sec)},
		},
		"what has left the window is not given back again": {
			{start, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, start)},
			{start + 5*sec, Request{N: 2}, allowedResult(3, 0, 10*sec).took(2, start+5*sec)},
			{start + 10*sec, Request{Kind: Return, N: 1, Mark: int64(start)}, allowedResult(3, 1, 5*sec)},
			{start + 10*sec, Request{Kind: Return, N: 9, Mark: int64(start + 5*sec)}, allowedResult(3, 3, 0)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			runWindowSteps(t, newWindowState(t, windowQuota(rules.SlidingLog, 3, 10*sec), start), steps)
		})
	}
	t.Run("D1: denials are recorded if asked", func(t *testing.T) {
		q := windowQuota(rules.SlidingLog, 3, 10*sec)
		q.CountDenied = true
		runWindowSteps(t, newWindowState(t, q, start), []windowStep{
			{start, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, start)},
			{start + 9*sec, Request{N: 2}, deniedResult(3, 0, 10*sec, 10*sec)}, // 2 of 3 are left only then
			{start + 10*sec, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, start+10*sec)},
			{start + 11*sec, Request{N: 4}, deniedResult(3, 0, 0, 9*sec)}, // never: not counted
		})
	})
}

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
