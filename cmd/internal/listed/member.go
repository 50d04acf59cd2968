package listed

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// Member is an instance or an aggregator. If it sends counts but no heartbeat, only Name and
// Heard are known, and the other fields are omitted.
type Member struct {
	Name         string    `json:"name"`
	Heard        time.Time `json:"heard"`
	Role         string    `json:"role,omitempty"` // "instance", "aggregator"
	RulesVersion string    `json:"rules_version,omitempty"`
	Program      string    `json:"program,omitempty"`
	Started      time.Time `json:"started,omitzero"`
	// OffsetMillis is how far the member's clock is ahead of Redis's.
	OffsetMillis *float64 `json:"offset_ms,omitempty"`
	// Dropped and Lost are the counts of the last minute.
	Dropped    *int64 `json:"dropped,omitempty"`
	Lost       *int64 `json:"lost,omitempty"`
	MemoryUsed int64  `json:"memory_used,omitempty"` // bytes
	MemoryMax  int64  `json:"memory_max,omitempty"`
	// Floor is the largest count of any key that can be hidden in an aggregator's window.
	Floor   *int64 `json:"floor,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Held is the number of hot keys that an instance holds without an aggregator.
	Held      int64     `json:"held,omitempty"`
	HeldSince time.Time `json:"held_since,omitzero"`
}

// OfMembers returns members in their output form, together with the instances that send counts
// and are not among them. The result is never nil, and ordered by name.
func OfMembers(members []published.Member, senders []published.Instance) []Member {
	out := make([]Member, 0, len(members)+len(senders))
	known := make(map[string]bool, len(members))
	for i := range members {
		m := &members[i]
		if m.Role == published.RoleInstance {
			known[m.Name] = true
		}
		one := Member{
			Name: m.Name, Heard: m.Heard.UTC(), Role: string(m.Role), RulesVersion: m.RulesVersion, Program: m.Program,
			Dropped: &m.Dropped, Lost: &m.Lost, MemoryUsed: m.MemoryUsed, MemoryMax: m.MemoryMax, Problem: m.Problem, Held: m.Held,
		}
		if m.Held > 0 {
			one.HeldSince = m.HeldSince.UTC()
		}
		if !m.Started.IsZero() {
			one.Started = m.Started.UTC()
		}
		if m.OffsetKnown {
			millis := float64(m.Offset) / float64(time.Millisecond)
			one.OffsetMillis = &millis
		}
		if m.Role == published.RoleAggregator {
			one.Floor = &m.Floor
		}
		out = append(out, one)
	}
	for _, s := range senders {
		if !known[s.Name] {
			out = append(out, Member{Name: s.Name, Heard: s.Heard.UTC()})
		}
	}
	slices.SortStableFunc(out, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
