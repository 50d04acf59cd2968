package blame

import (
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

const (
	dearFactor  = 4.0   // times the expected time of a request
	leastDemand = 0.005 // of the pool's time, of a key that is kept
	leastHang   = 1.5   // seconds for which a running request is proof; its instance may have paused
	cheapKept   = 2     // requests in a row at the usual cost that release a kept key

	firstKeyRetry = 10 * time.Second
)

// Reasons of a release.
const (
	whyStopped = "its requests stopped"
	whyCheap   = "its requests cost no more than usual"
	whyNoGain  = "holding it did not make the others faster"
	whyOver    = "the others are no longer slow"
)

// hold is a key that is held, or suspected in shadow.
type hold struct {
	subject *subject
	since   time.Time
	about   published.Hold
	helped  bool      // the others became faster when it was held
	flood   bool      // it is held for the number of its requests
	flooded time.Time // last time at which its requests were too many
	cheap   int64     // requests in a row that cost no more than usual
	dear    int64     // requests in a row that did
	demand  float64   // requests since it was held
	active  time.Time // last time at which it had a request or, in shadow, was suspect
}

// newHold records the evidence.
func (j *Judge) newHold(s *subject, stage published.HoldStage, now time.Time) {
	each := s.own / max(1, s.ended)
	if s.ended < 1 {
		each = s.age
	}
	j.insert(&hold{subject: s, since: now, active: now, flood: s.byArrivals, about: published.Hold{
		Pool: j.config.Pool, Stage: stage,
		Share: min(1, s.excess/(j.evidence.total+s.excess)),
		Each:  duration(max(0, each)), Usual: duration(j.present.each), Slow: duration(j.present.each * j.present.recent(5)),
	}})
}

func (j *Judge) insert(h *hold) {
	h.subject.held = true
	at, _ := slices.BinarySearchFunc(j.held, h, func(a, b *hold) int { return a.subject.key.Compare(b.subject.key) })
	j.held = slices.Insert(j.held, at, h)
	j.changed = true
}

// release ends the holds for which why returns a reason.
func (j *Judge) release(now time.Time, why func(*hold) string) {
	j.held = slices.DeleteFunc(j.held, func(h *hold) bool {
		reason := why(h)
		if reason == "" {
			return false
		}
		h.subject.held = false
		if reason == whyNoGain && !j.trial.early || reason == whyCheap {
			h.subject.retry.fail(now, firstKeyRetry)
		}
		if reason != whyNoGain {
			h.subject.forget()
		}
		j.released = append(j.released, Released{Key: h.subject.key, Why: reason})
		j.changed = true
		return true
	})
}

// testHolds keeps the keys whose requests are dear while the others are fast, and releases those
// that cost no more than usual, or have no requests.
func (j *Judge) testHolds(now time.Time, seconds float64) {
	var joint float64
	var active time.Time
	for _, h := range j.held {
		u := &h.subject.step
		if u.Busy > 0 || u.Begun+u.Refused > 0 {
			h.active = now
		}
		if h.active.After(active) {
			active = h.active
		}
		h.demand += float64(u.Begun + u.Refused)
		joint += h.demand / max(1, now.Sub(h.since).Seconds())
		if j.permits.tested && h.helped {
			j.testCost(h, now, seconds)
		}
	}
	allStopped := now.Sub(active) > silence(joint, 4*time.Second, 9*time.Second)
	j.release(now, func(h *hold) string {
		rate := max(0, h.demand-1) / max(1, h.active.Sub(h.since).Seconds())
		switch {
		case allStopped || now.Sub(h.active) > silence(rate, 5*time.Second, 30*time.Second):
			return whyStopped
		case h.cheap >= cheapKept, h.cheap > 0 && h.about.Stage == published.HoldTrial:
			return whyCheap
		}
		return ""
	})
}

// silence returns how long a key with this many requests a second must have none to have stopped.
func silence(rate float64, least, most time.Duration) time.Duration {
	return min(max(least, duration(6/max(rate, 0.01))), most)
}

// testCost compares the requests of a held key that were admitted with the usual ones.
func (j *Judge) testCost(h *hold, now time.Time, seconds float64) {
	s, u := h.subject, &h.subject.step
	// The factor is of the time when the others were slow.
	expected := min(j.evidence.factor, max(1, j.present.recent(5))) * s.expected(j.table.dearest[s.route])
	dear := dearFactor*(expected+j.present.scatter) + j.present.wait
	// A key that has just been held has had no time for requests.
	rate := max(h.demand/max(1, now.Sub(h.since).Seconds()), s.demand/max(1, j.present.window))
	matters := func(each float64) bool {
		return rate*each >= leastDemand*j.present.usualInFlight
	}
	proven := h.flood && float64(u.Begun+u.Refused) > arrivals*j.present.rise*s.rate*seconds+1
	if proven {
		h.flooded = now
	}
	need := int64(1)
	if s.costs >= 5 {
		need = 2 // a request of a key may well take some times as long as usual
	}
	if u.Ended > 0 {
		each := u.Took.Seconds() / float64(u.Ended)
		if each >= dear && matters(each) {
			h.dear, h.cheap = h.dear+u.Ended, 0
		} else if each < dear/2 && !proven && now.Sub(h.flooded) > 3*time.Second {
			h.cheap, h.dear = h.cheap+u.Ended, 0
		}
	}
	proven = proven || h.dear >= need || s.age >= max(float64(need)*dear, leastHang) && matters(s.age)
	if proven {
		h.cheap = 0
		if h.about.Stage == published.HoldTrial {
			h.about.Stage = published.HoldKept
			j.changed = true
		}
	}
}

// reportSuspects lists suspects without holding them.
func (j *Judge) reportSuspects(suspects []*subject, now time.Time) {
	for _, s := range suspects {
		j.newHold(s, published.HoldSuspected, now)
	}
	for _, h := range j.held {
		if j.present.overloaded() && h.subject.score >= leastScore {
			h.active = now
		}
	}
	j.release(now, func(h *hold) string {
		if now.Sub(h.active) > 5*time.Second {
			return whyOver
		}
		return ""
	})
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
