package replay

import (
	"cmp"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// KeyReport is the outcome of one key. Without a key it is that of the requests that a rule
// without hot limits, or that an exception blocks.
type KeyReport struct {
	Rule string `json:"rule"`
	Key  string `json:"key,omitempty"`
	// Hot is the number of times that the key was hot, and Seconds the total time.
	Hot     int     `json:"hot"`
	Seconds float64 `json:"seconds"`
	// Limited is the number of its requests that would have been refused.
	Limited int64 `json:"limited"`
}

// reports collects the outcome of each key that is ever hot.
type reports struct {
	guard *middleware.Guard
	keys  map[rules.Key]*hotSpells
	rules map[string]int64 // refused requests by rule, for rules without hot and for exceptions
	hot   map[string]bool  // rules with hot
}

type hotSpells struct {
	times   int
	hot     bool
	since   time.Time
	lasted  time.Duration
	limited int64
	inForce bool
	before  int64 // requests refused before the current time in force
}

func newReports(ruleset *rules.Rules, guard *middleware.Guard) *reports {
	r := &reports{guard: guard, keys: make(map[rules.Key]*hotSpells), rules: make(map[string]int64), hot: make(map[string]bool)}
	for i := range ruleset.Rules {
		r.hot[ruleset.Rules[i].ID] = len(ruleset.Rules[i].Hot) > 0
	}
	return r
}

// recordEvent records that a key became hot or cooled.
func (r *reports) recordEvent(hot bool, h published.Hot, t time.Time) {
	k := r.keys[h.Key]
	if k == nil {
		k = &hotSpells{}
		r.keys[h.Key] = k
	}
	switch {
	case hot && !k.hot:
		k.hot, k.since = true, t
		k.times++
	case !hot && k.hot:
		k.hot = false
		k.lasted += max(0, t.Sub(k.since))
	}
}

// decided records the decision about a request.
func (r *reports) decided(d rules.Decision) {
	refused := !d.Allowed || d.Reason == rules.ReasonShadow
	if refused && (!r.hot[d.Rule] || d.Reason == rules.ReasonBlocked) {
		r.rules[d.Rule]++
	}
}

// refused returns how often each hot key's limit has refused so far.
func (r *reports) refused() map[rules.Key]int64 {
	all := make(map[rules.Key]int64)
	for _, k := range r.guard.HotKeys() {
		all[k.Key] = k.Refused
	}
	return all
}

// cooling books the refusals of keys whose limit is about to end.
func (r *reports) cooling(change published.Change) {
	if len(change.Cool) == 0 {
		return
	}
	refused := r.refused()
	for _, h := range change.Cool {
		r.closeKey(h.Key, refused)
	}
}

func (r *reports) closeKey(key rules.Key, refused map[rules.Key]int64) {
	if k := r.keys[key]; k != nil && k.inForce {
		k.inForce = false
		k.limited += refused[key] - k.before
	}
}

// heating starts to count the refusals of keys whose limit has just begun. The guard keeps the
// count of a key that returns soon, so the earlier refusals are subtracted.
func (r *reports) heating(change published.Change) {
	if len(change.Hot) == 0 {
		return
	}
	refused := r.refused()
	for _, h := range change.Hot {
		if k := r.keys[h.Key]; k != nil && !k.inForce {
			k.inForce, k.before = true, refused[h.Key]
		}
	}
}

// closeAll closes all accounts and returns the reports, the most limited keys first.
func (r *reports) closeAll(now time.Time) []KeyReport {
	refused := r.refused()
	var all []KeyReport
	for key, k := range r.keys {
		r.closeKey(key, refused)
		if k.hot {
			k.lasted += max(0, now.Sub(k.since))
		}
		all = append(all, KeyReport{Rule: key.Rule, Key: key.Text, Hot: k.times, Seconds: k.lasted.Seconds(), Limited: k.limited})
	}
	for rule, limited := range r.rules {
		all = append(all, KeyReport{Rule: rule, Limited: limited})
	}
	slices.SortFunc(all, func(a, b KeyReport) int {
		return cmp.Or(cmp.Compare(b.Limited, a.Limited), cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return all
}
