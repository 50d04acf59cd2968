package e2e

import (
	"testing"
	"time"
)

// story is what happens to a fleet under the eyes of a crowd, fault by fault.
type story struct {
	t      *testing.T
	crowd  *crowd
	sights *sights
	apis   []*api
	since  time.Duration // all has been well since
	faults []fault
}

// fault is what is done to the fleet. All must be right again within recovery of when
// it could be mended at all: of a broker's death that is when its partitions have
// other leaders, which takes Kafka some two seconds.
type fault struct {
	name     string
	begin    func()        // nil: the fault is all in mendable
	mendable func()        // returns when others have done what it takes; nil: nobody has to
	pass     time.Duration // how long it is watched

	began, mended, deadline time.Duration // since the crowd's beginning
}

// beginStory lets a crowd in and watches, and waits until all is well.
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
	time.Sleep(max(coolWithin, f.settles)) // what was hot by the way it began has cooled
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

// runFault does what begins a fault, then what it takes until it can be mended, and
// lets time pass.
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

// endAndJudge ends the traffic, waits until the instances have sent what they counted, and
// judges.
func (s *story) endAndJudge() {
	s.t.Helper()
	s.sights.stop()
	s.crowd.stop()
	s.sights.checkSights(s.since, s.faults)
	s.crowd.checkTerms(s.since)
}
