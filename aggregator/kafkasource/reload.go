package kafkasource

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hotparam/hotparam"
)

// Reload puts other rules in force while the source runs: in each partition between two
// batches of records, whose counts are therefore counted by the rules before or by these, as a
// whole. What happens to counts and hot keys says [aggregator.Detector.Reload]. If it returns
// an error, the present rules stay in force.
//
// Where a partition's worker is busy the rules are in force a little after Reload returned.
// It is safe for concurrent use.
func (s *Source) Reload(rules *hotparam.Rules) error {
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
	rules := w.source.inForce.Load().Rules
	if rules == w.rules.InOrder() {
		return
	}
	next := w.rules.Next(rules)
	w.rules = next
	w.decoder.Reload(next)
	now := later(w.now, w.mark.appended) // no count is later
	for _, h := range w.detector.Reload(next, homes(next.ByNumber(), w.parts), now) {
		if w.moved(h.Rule) {
			w.leaving = append(w.leaving, h.Key)
			w.left = w.wall.Add(w.source.lookback())
		} else {
			w.detector.TakeOver([]hotparam.Hot{h}, now)
		}
	}
	// What another partition was to have may be of a rule that is gone.
	w.leaving = slices.DeleteFunc(w.leaving, func(k hotparam.Key) bool {
		if next.NumberOf(k.Rule) >= 0 {
			return false
		}
		w.gate.Publish(hotparam.Change{Cool: []hotparam.Hot{{Key: k}}})
		return true
	})
}
