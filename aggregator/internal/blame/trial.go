package blame

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

const (
	trialTime    = 3 * time.Second
	longestTrial = 12 * time.Second        // of one that makes progress, or to which keys are added
	longestDrain = 30 * time.Second        // of one while requests that wait become fewer
	drainsFrom   = 1200 * time.Millisecond // so that the held keys' own requests are not among them
	joinAfter    = 400 * time.Millisecond
	firstRetry   = 2 * time.Second
	firstWait    = time.Second
	longestWait  = time.Minute
	longestProbe = 8 * time.Second // between requests that are admitted to test their cost
)

// trial is a time in which suspects are held to see whether the others become faster.
type trial struct {
	running      bool
	began, added time.Time
	renewed      time.Time // last time at which a key was added, or requests of held keys still ran
	slow, before float64   // the slowness at its begin, and when keys were last added
	early        bool      // it began before an overload
	tail         float64   // the ratio of the tail then
	begun        float64   // requests of the others then, a second
}

func (j *Judge) decide(suspects []*subject, now time.Time, seconds float64) {
	if j.mayTry(suspects, now) {
		j.try(suspects, now)
	}
	if j.trial.running {
		j.judgeTrial(now)
	}
	j.setPermits(now)
	j.testHolds(now, seconds)
	if len(j.held) == 0 {
		j.trial.running, j.permits = false, permits{}
	}
}

// mayTry reports whether a trial of suspects may begin, or whether they may join the one that runs.
// While its effect shows, only strong suspects join, since queues that drain make weak ones.
func (j *Judge) mayTry(suspects []*subject, now time.Time) bool {
	t := &j.trial
	switch {
	case len(suspects) == 0:
		return false
	case !t.running:
		return !j.retry.waits(now)
	case now.Sub(t.added) <= joinAfter:
		return false
	}
	return j.present.recent(3) > 0.85*t.before ||
		slices.ContainsFunc(suspects, func(s *subject) bool { return s.score >= 2*leastScore })
}

// try holds the suspects, together with those of a trial that runs already: only all causes
// together may show a gain.
func (j *Judge) try(suspects []*subject, now time.Time) {
	t := &j.trial
	if !t.running {
		*t = trial{running: true, began: now, slow: j.present.recent(5), early: !j.present.overloaded(), tail: j.tail.ratio(), begun: j.present.begun / j.present.window}
	}
	t.renewed, t.added, t.before = now, now, j.present.recent(3)
	for _, s := range suspects[:min(len(suspects), maxHeld-len(j.held))] {
		j.newHold(s, published.HoldTrial, now)
	}
}

// judgeTrial ends a trial when the others have gained, or when its time has passed. A gain at least
// halves the excess of their time, while they still send requests.
func (j *Judge) judgeTrial(now time.Time) {
	t, p := &j.trial, &j.present
	if t.early && p.overloaded() {
		t.early, t.slow, t.renewed = false, p.recent(5), now
	}
	gained := p.recent(5) < min(slowFactor, 1+(t.slow-1)/2)
	if t.early {
		gained = j.tail.ratio() < 1+(t.tail-1)/2
	}
	if gained && p.begun/p.window >= t.begun/2 {
		t.running = false
		for _, h := range j.held {
			h.helped = true
		}
		return
	}
	// Requests that were admitted before may still run.
	if j.running() >= 0.5 {
		t.tail = max(t.tail, j.tail.ratio())
	}
	if j.running() >= 0.5 && now.Sub(t.began) < longestTrial || now.Sub(t.began) > drainsFrom && now.Sub(t.began) < longestDrain && p.drains() {
		t.renewed = now
	}
	if now.Sub(t.renewed) < trialTime || p.recent(5) < 0.7*t.slow && now.Sub(t.began) < longestTrial {
		return
	}
	t.running = false
	if t.early {
		j.early.fail(now, firstKeyRetry)
	} else {
		j.retry.fail(now, firstRetry)
	}
	j.release(now, func(h *hold) string {
		if h.helped {
			return ""
		}
		return whyNoGain
	})
}

// permits is the number of requests of all held keys together that are served at a time. It rises
// by one to see whether that slows the others down.
type permits struct {
	n      int64
	trying bool
	tested bool // it was raised since the first key was held
	safe   bool // one request did not hurt the others
	begun  bool // requests of held keys began since the raise
	since  time.Time
	next   time.Time // time of the next raise
	wait   time.Duration
}

func (j *Judge) setPermits(now time.Time) {
	p, before := &j.permits, j.permits.n
	var begun, refused float64
	for _, h := range j.held {
		begun += float64(h.subject.step.Begun)
		refused += h.subject.demand - h.subject.begun
	}
	hurts := j.present.hurt() || j.tail.disturbed()
	switch {
	case j.trial.running:
		*p = permits{tested: p.tested, next: now, wait: firstWait}
	case p.trying && !p.begun:
		p.since, p.begun = now, begun > 0
		if p.begun && !p.safe {
			p.n = 0 // one request shows its cost
		}
	case p.trying && hurts:
		p.lower(now, max(0, p.n-1))
	case p.trying && p.n == 0 && (j.running() < 0.05 || now.Sub(p.since) > 2*time.Second):
		p.trying, p.safe = false, true
	case p.trying && p.n > 0 && now.Sub(p.since) > 2*time.Second:
		p.trying, p.wait, p.next = false, firstWait, now.Add(firstWait)
	case !p.trying && p.n > 0 && (j.present.recent(5) >= slowFactor || j.tail.disturbed()):
		p.lower(now, p.n/2)
	case !p.trying && !hurts && refused > 0.5 && !now.Before(p.next):
		p.n++
		p.trying, p.tested, p.begun, p.since = true, true, false, now
	}
	j.changed = j.changed || p.n != before
}

// running returns the requests of held keys in flight.
func (j *Judge) running() (n float64) {
	for _, h := range j.held {
		n += h.subject.inFlight
	}
	return n
}

// lower sets the permits after the others were hurt, and doubles the time until the next raise.
func (p *permits) lower(now time.Time, n int64) {
	longest := longestWait
	if n == 0 {
		longest = longestProbe
	}
	p.n, p.trying, p.safe = n, false, n > 0
	p.wait = min(2*p.wait, longest)
	p.next = now.Add(p.wait)
}
