package blame

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// State is what a judge has learned, for the snapshot of its successor.
type State struct {
	Seconds float64    `json:"seconds"` // the span of the rates
	Keys    []KeyState `json:"keys,omitempty"`
}

// KeyState is the usual behaviour of a key or, with a Key without a rule, of the unreported keys of
// its route together.
type KeyState struct {
	Key   rules.Key `json:"key"`
	Route string    `json:"route"`
	Took  float64   `json:"took"`  // seconds that the requests of Costs took
	Costs float64   `json:"costs"` // number of requests
	Rate  float64   `json:"rate"`  // the usual requests a second
}

// Save returns what the judge has learned.
func (j *Judge) Save() State {
	state := State{Seconds: j.usual.seconds}
	for _, s := range j.table.subjects {
		if s.costs > 0 {
			state.Keys = append(state.Keys, KeyState{Key: s.key, Route: s.route, Took: s.costTime, Costs: s.costs, Rate: s.rate})
		}
	}
	return state
}

// Load continues with the state of another judge.
func (j *Judge) Load(state State) {
	j.usual.seconds = min(state.Seconds, rateHalfLife*2)
	for _, k := range state.Keys[:min(len(state.Keys), maxSubjects)] {
		if k.Took >= 0 && k.Costs > 0 && k.Rate >= 0 {
			s := j.table.find(k.Key, k.Route)
			s.costTime, s.costs, s.rate = k.Took, k.Costs, k.Rate
		}
	}
	j.usual.findDearest(&j.table)
}

// Held returns the keys to hold now, sorted by key.
func (j *Judge) Held() []Held {
	held := make([]Held, 0, len(j.held))
	for _, h := range j.held {
		about := h.about
		about.Permits = j.permits.n
		about.Now = duration(j.present.each * j.present.recent(5))
		held = append(held, Held{Key: h.subject.key, Route: h.subject.route, Since: h.since, Hold: about})
	}
	return held
}

// Released returns the keys that were released since the previous call.
func (j *Judge) Released() []Released {
	released := j.released
	j.released = nil
	return released
}

// Adopt continues holds that another judge of this pool published. The judge tests them like its own.
func (j *Judge) Adopt(held []Held, now time.Time) {
	for _, h := range held[:min(len(held), maxHeld)] {
		s := j.table.find(h.Key, h.Route)
		if s.held {
			continue
		}
		h.Hold.Pool = j.config.Pool
		j.insert(&hold{subject: s, since: h.Since, active: now, about: h.Hold, helped: h.Hold.Stage == published.HoldKept})
		j.permits = permits{n: h.Hold.Permits, tested: true, next: now.Add(firstWait), wait: firstWait}
		if !j.config.Shadow && h.Hold.Stage != published.HoldKept && !j.trial.running {
			j.trial = trial{running: true, began: now, added: now, renewed: now, slow: ratio(h.Hold.Slow, h.Hold.Usual)}
		}
	}
}

func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return slowFactor
	}
	return max(slowFactor, float64(a)/float64(b))
}
