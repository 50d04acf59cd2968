package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Goals that issue 36 sets.
const (
	foundGoal    = 2 * time.Second
	ratioGoal    = 1.2
	releasedGoal = 10 * time.Second
)

// Verdict compares a run with the goals.
type Verdict struct {
	Slow     time.Duration // time from the first cause's first request until half of the others' requests take five times as long
	Found    time.Duration // longest time from a cause's first request to its hold
	Missed   []string      // causes that were never held
	Gaps     []string      // causes that were not held to their end
	Released time.Duration // longest time from a cause's last request to its release
	Kept     []string      // causes that were held when the run ended
	Tried    []string      // other keys that were held for a trial
	Blamed   []string      // other keys that were kept after it

	Calm, Held, Ratio float64 // typical p99 in ms: before the causes, and while they were held
	During            Figures // while there were causes
	Whole             float64 // p99 in ms of all requests while the causes were held
}

// Judge returns the verdict on a run.
func (r *Result) Judge() (v Verdict) {
	first, last := make(map[string]time.Duration), make(map[string]time.Duration)
	for _, req := range r.requests {
		if _, ok := first[req.cause]; !ok {
			first[req.cause] = req.due
		}
		last[req.cause] = req.due
	}
	delete(first, "")
	end := r.Load.Before + r.Load.During
	for _, key := range slices.Sorted(maps.Keys(first)) {
		h := r.Holds[key]
		if h == nil {
			v.Missed = append(v.Missed, key)
			continue
		}
		v.Found = max(v.Found, h.From-first[key])
		if h.gaps() > 0 || h.To < last[key] {
			v.Gaps = append(v.Gaps, key)
		}
		if h.To >= r.Load.end()-time.Second {
			v.Kept = append(v.Kept, key)
		}
		v.Released = max(v.Released, h.To-last[key])
	}
	for _, key := range slices.Sorted(maps.Keys(r.Holds)) {
		if _, ok := first[key]; ok {
			continue
		}
		if r.Holds[key].wasKept() {
			v.Blamed = append(v.Blamed, key)
		} else {
			v.Tried = append(v.Tried, key)
		}
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	v.Calm = ms(r.typicalP99(r.Load.Before/2, r.Load.Before))
	v.Slow = r.slowAfter(end)
	held := min(r.Load.Before+v.Found+time.Second, end-time.Second)
	v.Held, v.Whole = ms(r.typicalP99(held, end)), ms(r.Between(held, end).P99)
	v.Ratio = v.Held / max(v.Calm, 0.001)
	v.During = r.Between(r.Load.Before, end)
	return v
}

// slowAfter returns how long after the first request of a cause the others become slow, or 0 if
// they do not before end.
func (r *Result) slowAfter(end time.Duration) time.Duration {
	first := slices.IndexFunc(r.requests, func(req request) bool { return req.cause != "" })
	if first < 0 {
		return 0
	}
	const step = 100 * time.Millisecond
	begin, calm := r.requests[first].due, r.Between(r.Load.Before/2, r.Load.Before).P50
	for at := begin; at < end; at += step {
		if r.Between(at, at+step).P50 > 5*calm {
			return at - begin
		}
	}
	return 0
}

// String returns the verdict in a few lines, each with the goal if it has one.
func (v Verdict) String() string {
	var b strings.Builder
	met := func(ok bool) string {
		if ok {
			return "met"
		}
		return "NOT MET"
	}
	fmt.Fprintf(&b, "found within %.2f s, the others slow after %.2f s, missed %q (goal: all within %v: %s)\n",
		v.Found.Seconds(), v.Slow.Seconds(), v.Missed, foundGoal, met(v.Found <= foundGoal && len(v.Missed) == 0))
	fmt.Fprintf(&b, "p99 of the others in a typical second %.1f ms, before %.1f ms: %.2f times (goal %g: %s); of all seconds %.1f ms\n",
		v.Held, v.Calm, v.Ratio, ratioGoal, met(v.Ratio <= ratioGoal), v.Whole)
	fmt.Fprintf(&b, "not held to their end: %q (goal none: %s)\n", v.Gaps, met(len(v.Gaps)+len(v.Missed) == 0))
	fmt.Fprintf(&b, "released within %.2f s, still held %q (goal %v: %s)\n",
		v.Released.Seconds(), v.Kept, releasedGoal, met(v.Released <= releasedGoal && len(v.Kept) == 0))
	fmt.Fprintf(&b, "others that were kept: %q (goal none: %s), only tried: %d\n", v.Blamed, met(len(v.Blamed) == 0), len(v.Tried))
	fmt.Fprintf(&b, "the others meanwhile: %d served, %d refused, %d failed", v.During.Served, v.During.Refused, v.During.Failed)
	return b.String()
}

// Table returns the figures of each second, and the changes of the holds of each second, as text.
func (r *Result) Table() string {
	var b strings.Builder
	b.WriteString("    second  served  refused  failed       p50       p99  of the causes: served  refused  failed\n")
	for i, f := range r.Seconds(0, r.Load.end()) {
		from := time.Duration(i) * time.Second
		c := r.causesBetween(from, from+time.Second)
		fmt.Fprintf(&b, "    %6d  %6d  %7d  %6d  %6.1f ms  %6.1f ms  %21d  %7d  %6d", i, f.Served, f.Refused, f.Failed,
			float64(f.P50.Microseconds())/1000, float64(f.P99.Microseconds())/1000, c.Served, c.Refused, c.Failed)
		for _, key := range slices.Sorted(maps.Keys(r.Holds)) {
			for _, c := range r.Holds[key].Changes {
				if c.At >= from && c.At < from+time.Second {
					fmt.Fprintf(&b, "  %.2f %s %s %d", c.At.Seconds(), strings.TrimPrefix(key, "GET "), cmp.Or(c.Stage, "released"), c.Permits)
				}
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
