package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

func TestSlidingBlocks(t *testing.T) {
	for name, steps := range map[string][]windowStep{
		"F5: the window is the last blocks, the current one among them": {
			{1001 * sec, Request{N: 1}, allowedResult(3, 2, 9*sec).took(1, 1000*sec)},
			{1007 * sec, Request{N: 2}, allowedResult(3, 0, 9*sec).took(2, 1006*sec)},
			{1009 * sec, Request{N: 1}, deniedResult(3, 0, sec, 7*sec)},
			{1010*sec - 1, Request{N: 1}, deniedResult(3, 0, 1, 6*sec+1)},
			{1010 * sec, Request{N: 1}, allowedResult(3, 0, 10*sec).took(1, 1010*sec)},
			{1010 * sec, Request{N: 1}, deniedResult(3, 0, 6*sec, 10*sec)},
			{1010 * sec, Request{N: 3}, deniedResult(3, 0, 10*sec, 10*sec)},
		},
		"F5: after an idle spell longer than the duration the old count is gone": {
			{1001 * sec, Request{N: 3}, allowedResult(3, 0, 9*sec).took(3, 1000*sec)},
			{1031 * sec, Request{N: 3}, allowedResult(3, 0, 9*sec).took(3, 1030*sec)},
		},
		"F5: wrapped blocks keep no stale counts": {
			{1000 * sec, Request{N: 1}, allowedResult(3, 2, 10*sec).took(1, 1000*sec)},
			{1008 * sec, Request{N: 1}, allowedResult(3, 1, 10*sec).took(1, 1008*sec)},
			{1010 * sec, Request{N: 2}, allowedResult(3, 0, 10*sec).took(2, 1010*sec)},
			{1019 * sec, Request{N: 1}, allowedResult(3, 0, 9*sec).took(1, 1018*sec)},
			{1021 * sec, Request{N: 2}, allowedResult(3, 0, 9*sec).took(2, 1020*sec)},
		},
		"F5: a first call above the limit is denied": {
			{1000 * sec, Request{N: 4}, deniedResult(3, 3, 0, 0)},
			{1000 * sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, 1000*sec)},
		},
		"F5: permits 0 is a look": {
			{1000 * sec, Request{N: 0}, allowedResult(3, 3, 0)},
			{1000 * sec, Request{N: 3}, allowedResult(3, 0, 10*sec).took(3, 1000*sec)},
			{1000 * sec, Request{N: 0}, allowedResult(3, 0, 10*sec)},
		},
		"another clock has whole blocks as well": {
			{993 * sec, Request{N: 1}, allowedResult(3, 2, 9*sec).took(1, 992*sec)},
			{1001 * sec, Request{N: 2}, allowedResult(3, 0, 9*sec).took(2, 1000*sec)},
			{101*sec + sec*9/10, Request{N: 1}, deniedResult(3, 0, 2*sec+sec/10, 8*sec+sec/10)}, // in the blocks of 94 and 100 s
		},
		"G: what is reserved is in a block to come": {
			{1001 * sec, Request{N: 3}, allowedResult(3, 0, 9*sec).took(3, 1000*sec)},
			{1001 * sec, Request{Kind: Reserve, N: 2, Within: 9 * sec}, allowedResult(3, 0, 19*sec).took(2, 1010*sec).after(9 * sec)},
			{1009 * sec, Request{Kind: Return, N: 1, Mark: int64(1010 * sec)}, allowedResult(3, 0, 11*sec)},
			{1010 * sec, Request{N: 2}, allowedResult(3, 0, 10*sec).took(2, 1010*sec)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := windowQuota(rules.SlidingBlocks, 3, 10*sec)
			q.Blocks = 5
			runWindowSteps(t, newWindowState(t, q, 0), steps)
		})
	}
}

// TestSlidingBlocksUneven checks blocks that do not divide the window. All of them together are at
// least as long as the window.
func TestSlidingBlocksUneven(t *testing.T) {
	q := windowQuota(rules.SlidingBlocks, 1, 10)
	q.Rate.Per, q.Rate.N, q.Burst, q.Blocks = 1000, 1, 1, 3
	s := newWindowState(t, q, 0)
	s.Do(0, Request{N: 1})
	if r := s.Do(1, Request{N: 1}); r.RetryAfter != 3*334-1 {
		t.Errorf("%+v", r)
	}
}

// TestSlidingBlocksBound checks that at most the rate is admitted in any window less one block.
func TestSlidingBlocksBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := windowQuota(rules.SlidingBlocks, rapid.Int64Range(1, 10).Draw(t, "n"), sec)
		q.Blocks = rapid.IntRange(2, 10).Draw(t, "blocks")
		s := newWindowState(t, q, 0)
		bound := q.Rate.Per - time.Duration(newWindow[blockFrame](q, 0).frame.length)
		var at time.Duration
		var taken []time.Duration
		for range rapid.IntRange(1, 60).Draw(t, "asks") {
			at += time.Duration(rapid.Int64Range(0, int64(sec)/3).Draw(t, "later"))
			for range s.Do(at, Request{Kind: AtMost, N: rapid.Int64Range(1, 4).Draw(t, "n")}).Taken {
				taken = append(taken, at)
			}
		}
		for i := int(q.Rate.N); i < len(taken); i++ {
			if taken[i]-taken[i-int(q.Rate.N)] < bound {
				t.Fatalf("%d permits from %v to %v", q.Rate.N+1, taken[i-int(q.Rate.N)], taken[i])
			}
		}
	})
}
