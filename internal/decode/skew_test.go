package decode

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/wire"
)

// skewed is a handler that keeps the last count.
type skewed struct {
	nobody
	last Count
}

func (s *skewed) Count(c Count) { s.last = c }

// Once a sender is known, each count belongs to the time where it is placed, or is later, or
// earlier, by up to its skew. This holds up to the delay of the sender's fastest packet and half a
// flush. A good clock nearby has no skew.
func TestSkewHoldsWhereCountsAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ahead := time.Duration(rapid.IntRange(-250, 250).Draw(t, "ahead ms")) * time.Millisecond
		fastest := time.Duration(rapid.SampledFrom([]int{0, 1, 20, 49, 51, 150}).Draw(t, "fastest ms")) * time.Millisecond
		jitter := rapid.IntRange(0, 80).Draw(t, "jitter ms")
		i := &instance{Name: "api-1", Clock: always(ahead), Delay: func(at time.Duration) time.Duration {
			if at%(500*time.Millisecond) == 0 {
				return fastest
			}
			return fastest + time.Duration(int(at/time.Millisecond*7919)%(jitter+1))*time.Millisecond
		}}
		d := NewDecoder(decoderRules(), wire.Plain)
		for _, p := range arrivals(10*time.Second, i) {
			var got skewed
			now := noon.Add(p.At)
			d.Record(&p.Meta, []byte(oneCount), now, true, &got)
			c := got.last
			if p.At < 2*time.Second {
				continue
			}
			really := noon.Add(p.Start).Sub(c.When)
			if low, high := min(0, c.Skew)-fastest-goodClock, max(0, c.Skew)+goodClock; really < low || really > high {
				t.Fatalf("at %v: a count is %v later than it is placed, its skew is %v", p.At, really, c.Skew)
			}
			if off := fastest - ahead; off.Abs() <= goodClock && c.Skew != 0 || c.Skew.Abs() > clockSlack {
				t.Fatalf("at %v: the least age is %v, and the skew %v", p.At, off, c.Skew)
			}
			if c.When.Add(c.Skew).After(now) {
				t.Fatalf("at %v: a count may be of a time to come, %v later than %v", p.At, c.Skew, c.When)
			}
		}
	})
}

// In a sender's first second a delay cannot be distinguished from a slow clock, so the sender has
// no skew then. The first packet proves a fast clock.
func TestSkewOfNewSenders(t *testing.T) {
	for _, test := range []struct {
		ahead, delay time.Duration
		first, then  bool // has a skew
	}{
		{0, 80 * time.Millisecond, false, true}, {-150 * time.Millisecond, 0, false, true},
		{150 * time.Millisecond, 0, true, true}, {0, time.Millisecond, false, false}, {-time.Hour, 0, false, false},
	} {
		d := NewDecoder(decoderRules(), wire.Plain)
		for _, p := range arrivals(3*time.Second, &instance{Name: "api-1", Clock: always(test.ahead), Delay: always(test.delay)}) {
			var got skewed
			d.Record(&p.Meta, []byte(oneCount), noon.Add(p.At), true, &got)
			want := test.first
			if p.At > 1500*time.Millisecond {
				want = test.then
			} else if p.At > time.Second {
				continue
			}
			if is := got.last.Skew != 0; is != want {
				t.Fatalf("ahead by %v, on its way for %v: at %v the skew is %v", test.ahead, test.delay, p.At, got.last.Skew)
			}
		}
	}
}
