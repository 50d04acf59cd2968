package kafkasource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hotparam/hotparam/rules"
)

// Reload puts other rules in force while the source runs: in each partition between two
// batches of records, whose counts are therefore counted by the rules before or by these, as a
// whole. What happens to counts and hot keys says [aggregator.Detector.Reload]. If it returns
// an error, the present rules stay in force.
//
// Where a partition's worker is busy the rules are in force a little after Reload returned.
// It is safe for concurrent use.
func (s *Source) Reload(rules *rules.Rules) error {
	if rules == nil {
		return errors.New("kafka source: no rules")
	}
	if err := rules.Validate(); err != nil {
		return fmt.Errorf("kafka source: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if was := s.cfg.Rules.Namespace; rules.Namespace != was {
		return fmt.Errorf("kafka source: the namespace is %q now, was %q: it changes at a restart only", rules.Namespace, was)
	}
	s.inForce.Store(newInForce(&s.cfg, rules))
	for w := range s.running {
		select {
		case w.reloads <- struct{}{}:
		default: // it has not looked since the rules changed before
		}
	}
	return nil
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
	now := later(w.now, w.mark.appended) // no count is later
	for _, h := range w.detector.Reload(next, homes(next.ByNumber(), w.parts), now) {
		if w.moved(h.Rule) {
			w.leaving = append(w.leaving, h.Key)
			w.left = w.wall.Add(w.source.lookback())
		} else {
			w.detector.TakeOver([]rules.Hot{h}, now)
		}
	}
	// What another partition was to have may be of a rule that is gone.
	w.leaving = slices.DeleteFunc(w.leaving, func(k rules.Key) bool {
		if next.NumberOf(k.Rule) >= 0 {
			return false
		}
		w.gate.Publish(rules.Change{Cool: []rules.Hot{{Key: k}}})
		return true
	})
}
