package kafkasource

import (
	"slices"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Reload puts other rules in force while the source runs. Each partition changes between two
// batches of records, so the counts of a batch are all counted by either the old or the new
// rules. [aggregator.Detector.Reload] says what happens to counts and hot keys. The rules must have
// the namespace of the present ones.
//
// A busy worker puts the rules in force a little after Reload has returned. Reload is safe for
// concurrent use.
func (s *Source) Reload(rules *rules.Rules) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inForce.Store(newInForce(&s.cfg, rules))
	for w := range s.running {
		select {
		case w.reloads <- struct{}{}:
		default: // it has not yet seen the previous reload
		}
	}
}

// reload puts the source's rules in force in the partition.
func (w *worker) reload() {
	ruleset := w.source.inForce.Load().Rules
	if ruleset == w.rules.InOrder() {
		return
	}
	next := w.rules.Next(ruleset)
	w.rules = next
	w.decoder.Reload(next)
	now := base.Later(w.now, w.mark.appended) // no count is later
	for _, h := range w.detector.Reload(next, homes(next.ByNumber(), w.parts), now) {
		if w.moved(h.Rule) {
			w.leaving = append(w.leaving, h.Key)
			w.releaseAt = w.wall.Add(w.source.lookback())
		} else {
			w.detector.TakeOver([]published.Hot{h}, now)
		}
	}
	// A key that another partition is to take may belong to a rule that was removed.
	w.leaving = slices.DeleteFunc(w.leaving, func(k rules.Key) bool {
		if next.NumberOf(k.Rule) >= 0 {
			return false
		}
		w.gate.Publish(published.Change{Cool: []published.Hot{{Key: k}}})
		return true
	})
}
