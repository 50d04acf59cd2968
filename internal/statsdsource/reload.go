package statsdsource

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Inherit makes keys hot that another process published before this one, for example before a
// restart. They stay hot until the source's own counts say otherwise. Keys whose rule was
// removed or whose value is allowed cool. It is safe for concurrent use.
func (s *Source) Inherit(hot []published.Hot) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	s.resume()
	if gone := s.shards.Inherit(s.rules, hot, time.Now()); len(gone) > 0 {
		s.publisher.Publish(published.Change{Cool: gone})
	}
}

// Reload puts other rules in force while the source runs. Each packet is counted as a whole by
// either the old or the new rules. [aggregator.Detector.Reload] says what happens to counts and
// hot keys. The rules must have the namespace of the present ones.
//
// It waits until readers have counted the packets they have read. Packets that arrive in the
// meantime wait in the sockets. It is safe for concurrent use.
func (s *Source) Reload(rules *rules.Rules) {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next := s.rules.Next(rules)
	s.listener.decoding.Lock()
	defer s.listener.decoding.Unlock()
	for _, d := range s.decoders {
		d.Reload(next)
	}
	s.shards.Reload(next, time.Now())
	s.rules = next
}
