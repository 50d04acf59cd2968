package middleware

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/middleware/internal/holding"
)

// maxHandover bounds the number of keys in a handover, over all limits.
const maxHandover = 4000

// handover is the state that one instance leaves to another, by the KeyID of the limit's name,
// since names may contain values. It contains no keys.
type handover struct {
	Limits map[uint64]holding.Handover `json:"limits"`
}

// HandOver gives up the permits that this instance holds of limits with scope: share, and
// returns them in a form for [Guard.Inherit] of another instance. It contains keys as hashes,
// and only the keys that have taken most. Afterwards the instance has only the permits that it
// earns. An instance that starts calls it first, so that it begins with nothing; an instance
// that leaves calls it last.
func (g *Guard) HandOver() []byte {
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	g.sharing.joining.Store(true)
	limits := 0
	g.eachShare(func(*rule, *limitSpec, time.Duration) { limits++ })
	out := handover{make(map[uint64]holding.Handover)}
	g.eachShare(func(r *rule, s *limitSpec, now time.Duration) {
		spent, all := g.spent(r, s, now)
		maxKeys := maxHandover / limits
		if s.single != nil { // for the next instance its one key is any key
			spent, all, maxKeys = map[uint64]float64{0: s.single.Spent(now)}, true, 0
		}
		left := s.kept.hold.Leave(now, spent, all, maxKeys)
		if g.addSharedDebt(r, s, limiter.Owing{All: s.kept.hold.Empty(now)}, now); left.Left > 0 || len(left.Of) > 0 {
			out.Limits[limiter.KeyID([]byte(s.name))] = rounded(left)
		}
	})
	data, err := json.Marshal(out)
	if err != nil || len(out.Limits) == 0 {
		return nil
	}
	return data
}

// rounded returns left rounded down to thousandths.
func rounded(left holding.Handover) holding.Handover {
	down := func(permits float64) float64 { return math.Floor(permits*1000) / 1000 }
	left.Left = down(left.Left)
	for id, permits := range left.Of {
		left.Of[id] = down(permits)
	}
	return left
}

// spent returns the permits that the keys of a limit lack, by their KeyID, and whether no other
// key lacks any.
func (g *Guard) spent(r *rule, s *limitSpec, now time.Duration) (spent map[uint64]float64, all bool) {
	spent, all = make(map[uint64]float64), true
	if s.keyed != nil {
		spent, all = s.keyed.Spent(now)
	}
	if u := s.unseen.Load(); u != nil {
		earned := s.kept.hold.Earned(max(0, now-u.since), true)
		for id, owed := range u.byKey {
			spent[id] = max(spent[id], owed-earned)
		}
	}
	for _, state := range g.hotStates(r) {
		if b := state.bucket.Load(); b != nil && b.limit == s.name {
			spent[state.id] = max(spent[state.id], b.Spent(now))
		}
	}
	return spent, all
}

// Inherit adds the permits that another instance left by [Guard.HandOver] to those of this one.
// age is the time since then. A handover may be inherited once. It adds nothing to a limit that
// this instance does not have, or whose part it already holds.
func (g *Guard) Inherit(data []byte, age time.Duration) error {
	var in handover
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("middleware: a handover: %w", err)
	}
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	g.eachShare(func(r *rule, s *limitSpec, now time.Duration) {
		if left, ok := in.Limits[limiter.KeyID([]byte(s.name))]; ok {
			g.addSharedDebt(r, s, s.kept.hold.Inherit(left, age, now), now)
		}
	})
	return nil
}

// Endow gives this instance the permits that it would have earned of its part while idle, a
// time without requests. A negative idle gives it the whole part. Endow is for an instance that
// does not join others but begins with them, after a time when there were none.
func (g *Guard) Endow(idle time.Duration) {
	g.sharing.mu.Lock()
	defer g.sharing.mu.Unlock()
	g.sharing.joining.Store(false)
	g.eachShare(func(r *rule, s *limitSpec, now time.Duration) {
		permits := math.Inf(1)
		if idle >= 0 {
			permits = s.kept.hold.Earned(idle, true)
		}
		g.addSharedDebt(r, s, limiter.Owing{All: -s.kept.hold.Accept(permits, now)}, now)
	})
}
