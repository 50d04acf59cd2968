package limitertest

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

var warmUpCases = []namedCase{
	{"F3: what is cold begins at a part of its rate, and comes to the whole", func(w *world) {
		// Guava's own case is 1/s, a warm-up of 10 s and a factor of 3. That makes 5 permits at
		// the threshold and 10 stored by a cold bucket; the 5 above the threshold take 10 s.
		k := w.key(rules.Quota{Algorithm: rules.TokenBucket, Rate: perSecond(1), Burst: 1, WarmUp: 10 * sec})
		var gaps []time.Duration
		for range 12 {
			r := k.askBackend(take(1))
			if !r.Allowed {
				k.Fatalf("%s", describeResult(r))
			}
			r = k.askBackend(peek(1))
			gaps = append(gaps, r.RetryAfter)
			w.sleep(r.RetryAfter)
		}
		var warm time.Duration
		for i, gap := range gaps {
			want := sec
			if i < 5 { // from 3 s to 1 s, in 5 steps along a line
				want = time.Duration((3 - 0.4*(float64(i)+0.5)) * float64(sec))
				warm += gap
			}
			if off := gap - want; off > 3*us || off < -3*us {
				k.Fatalf("permit %d took %v, want %v", i, gap, want)
			}
		}
		if off := warm - 10*sec; off > 10*us || off < -10*us {
			k.Fatalf("warm after %v, want 10s", warm)
		}
		w.sleep(time.Hour)
		if r := k.askBackend(take(1)); !r.Allowed {
			k.Fatalf("%s", describeResult(r))
		}
		if r := k.askBackend(peek(1)); r.RetryAfter < 2*sec {
			k.Fatalf("after an hour it is not cold again: %s", describeResult(r))
		}
	}},
}
