package limiter

import (
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Share returns the part of q that each of n instances has when each decides on its own. The
// part is an n-th of the rate and of the burst, but at least one permit, since an instance
// without one would never let anything pass. Below reports whether an n-th is less than one
// permit, so that n instances together may take n permits at once where q has fewer. Their rate
// still is that of q, except for calendar windows. An n below 1 counts as 1.
func Share(q *rules.Quota, n int) (part rules.Quota, below bool) {
	part = q.WithDefaults()
	instances := int64(max(n, 1))
	if instances == 1 || part.Burst == rules.Unlimited {
		return part, false
	}
	below = part.Burst < instances
	switch {
	case !part.Algorithm.Windowed(): // the same permits in n times the time: exact
		part.Rate = slower(part.Rate, instances)
	case !below:
		part.Rate.N /= instances
	case part.Calendar != "":
		part.Rate.N = 1
	default: // one permit at a time, in as many windows as it takes
		part.Rate = slower(rules.Rate{N: 1, Per: part.Rate.Per}, (instances-1)/part.Rate.N+1)
	}
	if part.Algorithm.Windowed() {
		part.Burst = part.Rate.N
	} else {
		part.Burst = max(min(part.Burst/instances, maxFill/part.Rate.Interval()), 1)
	}
	part.Missing = min(part.Missing/instances, part.Burst)
	return part, below
}

// slower returns r divided by divisor. If its period would exceed all clocks, it returns a rate in
// whole permits, and at least one.
func slower(r rules.Rate, divisor int64) rules.Rate {
	if int64(r.Per) > maxFill/divisor {
		return rules.Rate{N: max(r.N/divisor, 1), Per: min(r.Per, maxFill)}
	}
	return rules.Rate{N: r.N, Per: r.Per * time.Duration(divisor)}
}

// WindowEnd returns the time at which permits taken at an instant have left the window of q.
func WindowEnd(q *rules.Quota, taken time.Duration) time.Duration {
	if q.Calendar == "" {
		return taken + q.Rate.Per
	}
	f := fixedFrame{}.forQuota(q)
	return time.Duration(f.expiryOf(f.slot(int64(taken), int64(taken))))
}
