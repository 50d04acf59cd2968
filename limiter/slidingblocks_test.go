package limiter

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// Another clock has whole blocks as well.
func TestSlidingBlocksOfAnotherClock(t *testing.T) {
	q := windowQuota(rules.SlidingBlocks, 3, 10*sec)
	q.Blocks = 5
	runWindowSteps(t, newWindowState(t, q, 0), []windowStep{
		{993 * sec, Request{N: 1}, allowedResult(3, 2, 9*sec).took(1, 992*sec)},
		{1001 * sec, Request{N: 2}, allowedResult(3, 0, 9*sec).took(2, 1000*sec)},
		{101*sec + sec*9/10, Request{N: 1}, deniedResult(3, 0, 2*sec+sec/10, 8*sec+sec/10)}, // in the blocks of 94 and 100 s
	})
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
