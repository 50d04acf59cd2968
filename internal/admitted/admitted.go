// Package admitted adds up what instances report about the requests of hot keys.
//
//	admitted.go  the rates of the last seconds, compared with the keys' limits
//	totals.go    the outcomes since the keys became hot
package admitted

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

// Admissions holds the admissions by the members of a namespace in the last seconds. A nil
// Admissions knows nothing.
type Admissions struct {
	keys      map[uint64]sum
	instances int  // members that are instances
	partial   bool // whether some instances send counts but no heartbeats
	cut       bool // whether some instances admit of more keys than they report
}

// sum is the sum of the admissions of one key.
type sum struct {
	n           int64
	perSecond   float64
	first, last time.Time // the time in which they were counted
	onHot       OnHot
	mostAlone   float64 // the most by one instance
	rates       Rates
}

// Rates are the rates of the outcomes of a hot key's requests, per second and over all instances;
// see [published.Outcomes].
type Rates struct{ Passed, Refused, Waited, Served float64 }

// Requests returns the rate of all requests.
func (r Rates) Requests() float64 { return r.Passed + r.Refused + r.Served }

// OnHot holds the rates at which on_hot answered a hot key's requests, per second and by all
// instances. They are in no limit's admissions, apart from part of Alone.
type OnHot struct {
	Stored, Joined float64 // from memory, and by the answer to an identical request
	Alone          float64 // as without on_hot, since they were not for sharing
	AloneFor       string  // a reason of Alone, or empty
}

// RefusedShare returns the share of the requests that are refused, of 0 to 1.
func (r Rates) RefusedShare() float64 {
	if all := r.Requests(); all > 0 {
		return r.Refused / all
	}
	return 0
}

// add adds the report of an instance.
func (s *sum) add(a *published.Admitted) {
	seconds := a.Span.Seconds()
	s.perSecond += float64(a.N) / seconds
	o, alone := &s.onHot, float64(a.OnHot.Alone)/seconds
	o.Stored += float64(a.OnHot.Stored) / seconds
	o.Joined += float64(a.OnHot.Joined) / seconds
	o.Alone += alone
	if alone > s.mostAlone {
		s.mostAlone, o.AloneFor = alone, a.OnHot.AloneFor
	}
	r, l := &s.rates, &a.Lately
	r.Passed += float64(l.Passed) / seconds
	r.Refused += float64(l.Refused) / seconds
	r.Waited += float64(l.Waited) / seconds
	r.Served += float64(l.Served) / seconds
}

// silent is the time after which a member without a heartbeat admits nothing, since it has crashed.
const silent = 3 * time.Second

// New adds up the reports of members. An instance in instances, which sends counts, but not among
// the members makes the sums incomplete.
func New(members []published.Member, instances []published.Instance) *Admissions {
	f := &Admissions{keys: make(map[uint64]sum)}
	names := make(map[string]bool)
	var latest time.Time
	for i := range members {
		if heard := members[i].Heard; heard.After(latest) {
			latest = heard
		}
	}
	for i := range members {
		m := &members[i]
		if m.Role != published.RoleInstance {
			continue
		}
		f.instances++
		names[m.Name] = true
		f.cut = f.cut || m.MoreAdmitted
		for i := range m.Admitted {
			a := &m.Admitted[i]
			s, had := f.keys[a.ID]
			s.n += a.N
			if latest.Sub(m.Heard) < silent {
				s.add(a)
			}
			if first := m.Heard.Add(-a.Span); !had || first.Before(s.first) {
				s.first = first
			}
			if m.Heard.After(s.last) {
				s.last = m.Heard
			}
			f.keys[a.ID] = s
		}
	}
	for _, i := range instances {
		f.partial = f.partial || !names[i.Name]
	}
	return f
}

// Gauge compares the admissions of a hot key by all instances with its limit. Apart from OnHot, Rates
// and AtLeast, it is zero if they are not known, or if the key has no limit.
type Gauge struct {
	OnHot     OnHot
	Rates     Rates
	PerSecond float64 // requests, bytes, milliseconds or units
	// AtLeast reports whether the admissions by some instances are missing.
	AtLeast bool
	// Limits is the number of limits that hold together: the number of instances with
	// scope: instance, otherwise 1.
	Limits int
	Limit  rules.Rate // one of these limits
	// OfBound is the number of admissions in the last seconds, divided by burst + rate × time, the
	// most that the limits allow.
	OfBound float64
}

// Known reports whether g has figures of a limit.
func (g Gauge) Known() bool { return g.Limits > 0 }

// Allowed returns what the limits allow per second.
func (g Gauge) Allowed() float64 {
	return float64(g.Limits) * float64(g.Limit.N) / g.Limit.Per.Seconds()
}

// inexact is how far the time of a report may be from the time when it was measured: a heartbeat
// may take half a second.
const inexact = 500 * time.Millisecond

// Gauge returns the gauge of a hot key.
func (f *Admissions) Gauge(h *published.Hot) Gauge {
	if f == nil || f.instances == 0 {
		return Gauge{}
	}
	s, reported := f.keys[limiter.KeyID([]byte(h.Key.String()))]
	if h.Limit.IsZero() {
		return Gauge{OnHot: s.onHot, Rates: s.rates, AtLeast: f.partial || f.cut}
	}
	g := Gauge{OnHot: s.onHot, Rates: s.rates, PerSecond: s.perSecond, AtLeast: f.partial || f.cut, Limits: 1, Limit: h.Limit}
	if h.Scope == "" || h.Scope == rules.ScopeInstance {
		g.Limits = f.instances
	}
	if reported {
		within := s.last.Sub(s.first) + inexact
		bound := float64(g.Limits)*float64(h.Burst) + g.Allowed()*within.Seconds()
		g.OfBound = float64(s.n) / math.Max(bound, 1)
	}
	return g
}
