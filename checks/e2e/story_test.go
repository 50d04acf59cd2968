package e2e

import (
	"testing"
	"time"
)

// No outage makes a request fail or wait, and everything works again without help within recovery
// of the outage's end.
const recovery = 3 * time.Second

// story is a sequence of faults that a fleet suffers under the traffic of a crowd.
type story struct {
	t      *testing.T
	crowd  *crowd
	sights *sights
	apis   []*api
	since  time.Duration // all has been well since
	faults []fault
}

// fault is a fault of the fleet. All must be right again within recovery of the moment when it
// could be mended. For the death of a broker that is when its partitions have other leaders,
// which takes Kafka about two seconds.
type fault struct {
	name     string
	begin    func()        // nil: the fault is all in mendable
	mendable func()        // returns when the fault could be mended; nil if at once
	pass     time.Duration // time for which it is watched

	began, mended, deadline time.Duration // times since the crowd's beginning
}

// beginStory starts a crowd, watches it, and returns when everything works.
func (f *fleet) beginStory(apis []*api) *story {
	f.t.Helper()
	s := &story{t: f.t, crowd: newCrowd(f.t), apis: apis}
	s.crowd.beginVisits(f, apis, f.plainServer())
	within(f.t, patience, "all steady terms hot on all instances", func() bool {
		well := all(apis, func(in instance) bool { return in.holdsAll(s.crowd.termsOf(steady)) })
		if !well {
			time.Sleep(100 * time.Millisecond) // the answers are long
		}
		return well
	})
	s.sights = s.crowd.watchHotSet(f, apis)
	time.Sleep(max(coolWithin, f.settles)) // keys made hot by the start have cooled
	s.since = s.now()
	time.Sleep(2 * time.Second)
	return s
}

func (in *instance) holdsAll(terms []*term) bool {
	for _, x := range terms {
		if !in.holds(x.member) {
			return false
		}
	}
	return true
}

func (s *story) now() time.Duration { return time.Since(s.crowd.began) }

// runFault begins a fault, waits until it can be mended, and lets time pass.
func (s *story) runFault(f fault) {
	s.t.Helper()
	f.began = s.now()
	if f.begin != nil {
		f.begin()
	}
	f.mended = f.began
	if f.mendable != nil {
		f.mendable()
		f.mended = s.now()
	}
	f.deadline = f.mended + recovery
	s.faults = append(s.faults, f)
	time.Sleep(f.pass)
}

// endAndJudge ends the traffic, waits until the instances have sent their counts, and checks
// everything.
func (s *story) endAndJudge() {
	s.t.Helper()
	s.sights.stop()
	s.crowd.stop()
	s.sights.checkSights(s.since, s.faults)
	s.crowd.checkTerms(s.since)
}
