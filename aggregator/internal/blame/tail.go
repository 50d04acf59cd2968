package blame

import "math"

const (
	tailPart   = 0.02 // of the others' requests are in the tail, usually
	tailFactor = 2.0  // times as many are a disturbance
	tailChance = 5.0  // standard deviations beyond the usual number
	tailGone   = 0.5  // seconds after which a recent request counts half
	tailUsual  = 20.0 // and a usual one

	buckets      = 96
	shortest     = 50e-6 // seconds, of the first bucket
	bucketFactor = 1.15
)

// tail watches the slowest of the others' requests. One dear request on a shared processor delays few
// others, which the median does not show.
type tail struct {
	usual     [buckets]float64 // requests by time
	fresh     [buckets]float64 // not yet part of it
	level     int              // the bucket above which tailPart of the usual requests are, at most
	part      float64          // of the usual requests are above it; 0 if none are usual yet
	all, over float64          // recent requests, and those above the level
}

func bucket(seconds float64) int {
	return max(0, min(int(math.Log(seconds/shortest)/math.Log(bucketFactor)), buckets-1))
}

// measure adds the requests of keys that are neither held nor dear, which may be the cause.
func (t *tail) measure(subjects []*subject, seconds float64) {
	keep := math.Exp2(-seconds / tailGone)
	t.all *= keep
	t.over *= keep
	for _, s := range subjects {
		if s.held || s.step.Ended == 0 || s.mayBeDear() {
			continue
		}
		n := float64(s.step.Ended)
		b := bucket(s.step.Took.Seconds() / n)
		t.fresh[b] += n
		t.all += n
		if b > t.level {
			t.over += n
		}
	}
}

// commit makes the fresh requests usual, or drops them.
func (t *tail) commit(usual bool, seconds float64) {
	if usual {
		keep := math.Exp2(-seconds / tailUsual)
		all := 0.0
		for i := range t.usual {
			t.usual[i] = t.usual[i]*keep + t.fresh[i]
			all += t.usual[i]
		}
		above := 0.0
		for t.level = buckets - 1; t.level > 0 && above+t.usual[t.level] <= all*tailPart; t.level-- {
			above += t.usual[t.level]
		}
		if all > 0 {
			t.part = max(above/all, tailPart/2)
		}
	}
	t.fresh = [buckets]float64{}
}

// ratio returns how many times the usual number of requests are in the tail.
func (t *tail) ratio() float64 { return t.over / max(1e-9, t.expected()) }

// expected returns the number of recent requests that are usually in the tail. Before any are usual,
// all may be.
func (t *tail) expected() float64 {
	if t.part == 0 {
		return t.all
	}
	return t.all * t.part
}

// disturbed reports whether clearly more requests than usual are in the tail.
func (t *tail) disturbed() bool {
	e := t.expected()
	return t.over-e >= max((tailFactor-1)*e, tailChance*math.Sqrt(e)) && t.over-e >= 3
}
