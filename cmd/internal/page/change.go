package page

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/published"
)

// stateChange is a change of the state, as sent in a stream. An absent field has not changed. A
// snapshot is a change from nothing.
type stateChange struct {
	Now      int64           `json:"now"` // Redis's clock, unix ms
	Put      []keyRow        `json:"put,omitempty"`
	Gone     []uint32        `json:"gone,omitempty"`
	Rates    json.RawMessage `json:"rates,omitempty"` // [[id, rate, low, high, admitted, on_hot, refused, refused_share], …]
	Suspects json.RawMessage `json:"suspects,omitempty"`
	Summary  json.RawMessage `json:"summary,omitempty"`
	Controls json.RawMessage `json:"controls,omitempty"`
	Members  json.RawMessage `json:"members,omitempty"`
	Total    int             `json:"members_total,omitempty"`
	Facts    json.RawMessage `json:"facts,omitempty"`
	Events   []live.Event    `json:"events,omitempty"`
}

// facts are the page's facts about the namespace as a whole.
type facts struct {
	Namespace    string `json:"namespace"`
	Version      string `json:"version"`
	RulesVersion string `json:"rules_version"`
	HasToken     bool   `json:"token"`
	MemoryUsed   int64  `json:"memory_used"` // memory of the aggregator with the smallest free share
	MemoryMax    int64  `json:"memory_max"`
	Floor        int64  `json:"floor"` // highest floor of all aggregators
	Redis        struct {
		URL       string `json:"url,omitempty"` // URL for commands, without a password
		Known     bool   `json:"known"`         // Redis has been queried
		Connected bool   `json:"connected"`
		Problem   string `json:"problem,omitempty"`
	} `json:"redis"`
	Published   bool   `json:"published"`
	MembersErr  string `json:"members_problem,omitempty"`
	ControlsErr string `json:"controls_problem,omitempty"`
}

func newFacts(s *live.Snapshot, ruleset RuleList, cfg *Config) facts {
	f := facts{Namespace: s.Namespace, Version: cfg.Version, RulesVersion: ruleset.Version, HasToken: cfg.Guard.HasToken(), Published: s.Published}
	f.Redis.URL = cfg.Redis
	f.Redis.Known = s.Err != nil || !s.Read.IsZero()
	f.Redis.Connected = s.Err == nil && !s.Read.IsZero()
	f.Redis.Problem = words(s.Err)
	f.MembersErr, f.ControlsErr = words(s.MembersErr), words(s.ControlsErr)
	for _, m := range s.Members {
		if m.Role != published.RoleAggregator {
			continue
		}
		f.Floor = max(f.Floor, m.Floor)
		if f.MemoryMax == 0 || float64(m.MemoryUsed)/float64(max(1, m.MemoryMax)) > float64(f.MemoryUsed)/float64(f.MemoryMax) {
			f.MemoryUsed, f.MemoryMax = m.MemoryUsed, m.MemoryMax
		}
	}
	return f
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// now returns Redis's clock at this moment, as far as it is known.
func now(s *live.Snapshot) time.Time {
	if s.Clock.IsZero() {
		return time.Now()
	}
	return s.Clock.Add(time.Since(s.Read))
}

// maxMembers is the number of members that the page shows, since no one reads a longer table.
// The API has all members.
const maxMembers = 500

// members returns all known members: those with a problem, then aggregators, then the others,
// each by name.
func members(s *live.Snapshot, version string) []listed.Member {
	all := listed.OfMembers(s.Members, s.Instances)
	slices.SortStableFunc(all, func(a, b listed.Member) int {
		return cmp.Or(cmp.Compare(rank(&a, version), rank(&b, version)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// rank returns 0 for a member with a problem, 1 for an aggregator and 2 for others.
func rank(m *listed.Member, version string) int {
	if m.Problem != "" || m.RulesVersion != "" && m.RulesVersion != version || loses(m) || isOff(m) {
		return 0
	}
	if m.Role == string(published.RoleAggregator) {
		return 1
	}
	return 2
}

func loses(m *listed.Member) bool { return m.Lost != nil && *m.Lost+*m.Dropped > 0 }

// isOff reports whether a clock is off by so much that the page marks it as well.
func isOff(m *listed.Member) bool { return m.OffsetMillis != nil && math.Abs(*m.OffsetMillis) > 1000 }
