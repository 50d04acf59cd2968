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

// fault is what was done to the fleet, and from when on all could be right again.
type fault struct {
	name      string
	at, clear time.Duration // since the crowd's beginning
}

// tell lets a crowd in and watches, and waits until all is well.
func (f *fleet) tell(apis []*api) *story {
	f.t.Helper()
	s := &story{t: f.t, crowd: newCrowd(f.t), apis: apis}
	s.crowd.begin(f, apis, f.plainServer())
	within(f.t, patience, "all steady terms hot on all instances", func() bool {
		well := all(apis, func(in instance) bool { return in.holdsAll(s.crowd.of(steady)) })
		if !well {
			time.Sleep(100 * time.Millisecond) // the answers are long
		}
		return well
	})
	s.sights = s.crowd.watch(f, apis)
	time.Sleep(coolWithin) // what was hot by the way it began has cooled
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

// fault does what begins a fault, then what it takes until it can be mended, and
// lets time pass.
func (s *story) fault(name string, begin func(), mendable func(), pass time.Duration) {
	s.t.Helper()
	s.faults = append(s.faults, fault{name: name, at: s.now(), clear: s.now()})
	if begin != nil {
		begin()
	}
	if mendable != nil {
		mendable()
		s.faults[len(s.faults)-1].clear = s.now()
	}
	time.Sleep(pass)
}

// end ends the traffic, waits until the instances have sent what they counted, and
// judges.
func (s *story) end() {
	s.t.Helper()
	s.sights.stop()
	s.crowd.stop()
	s.sights.judge(s.since, s.faults)
	s.crowd.judge(s.since)
}
