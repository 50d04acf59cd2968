package statsdsource

import (
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Inherit makes keys hot that another process published before this one, as those of before a
// restart. They stay hot until the source's own counts say otherwise. Those whose rule is gone
// or whose value is allowed cool. It is safe for concurrent use.
func (s *Source) Inherit(published []rules.Hot) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.resume()
	if gone := s.shards.Inherit(s.rules, published, time.Now()); len(gone) > 0 {
		s.publisher.Publish(rules.Change{Cool: gone})
	}
}

// Reload puts other rules in force while the source runs. Each packet is counted by the rules
// before or by these, as a whole. What happens to counts and hot keys says
// [aggregator.Detector.Reload]. If it returns an error, the present rules stay in force.
//
// It waits until readers have counted what they have read. Packets that arrive meanwhile wait
// in the sockets. It is safe for concurrent use.
func (s *Source) Reload(rules *rules.Rules) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	if rules == nil {
		return errors.New("statsd source: no rules")
	}
	if err := rules.Validate(); err != nil {
		return fmt.Errorf("statsd source: %w", err)
	}
	if was := s.rules.InOrder().Namespace; rules.Namespace != was {
		return fmt.Errorf("statsd source: the namespace is %q now, was %q: it changes at a restart only", rules.Namespace, was)
	}
	next := s.rules.Next(rules)
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	for _, d := range s.decoders {
		d.Reload(next)
	}
	s.shards.Reload(next, time.Now())
	s.rules = next
	return nil
}
