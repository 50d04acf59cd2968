package hotkeys

import "time"

// offsetEstimate estimates how far the local clock is ahead of Redis's. It uses the quickest of
// the last answers: the slower an answer, the less is known about when Redis read its clock. It
// is not safe for concurrent use.
type offsetEstimate struct {
	samples [8]struct{ took, offset time.Duration }
	n       int
}

// add adds an answer that contains Redis's time.
func (o *offsetEstimate) add(began, ended, redis time.Time) {
	took := ended.Sub(began)
	s := &o.samples[o.n%len(o.samples)]
	s.took, s.offset = took, ended.Round(0).Add(-took/2).Sub(redis)
	o.n++
}

// best returns the offset, and whether there is one.
func (o *offsetEstimate) best() (time.Duration, bool) {
	best := o.samples[0]
	for _, s := range o.samples[1:min(len(o.samples), max(o.n, 1))] {
		if s.took < best.took {
			best = s
		}
	}
	return best.offset, o.n > 0
}
