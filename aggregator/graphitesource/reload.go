package graphitesource

import (
	"errors"
	"fmt"

	"github.com/hotparam/hotparam"
)

// Reload puts other rules in force while the source runs. The next poll reads all points again
// that are in some window, so the windows of these rules are known from then on, new ones as
// well. Hot keys stay hot until those points say otherwise. Keys of rules that are gone cool
// at once, and changed limits are published at once. If Reload returns an error, the present
// rules stay in force.
//
// It waits until a poll that is under way has ended. It is safe for concurrent use.
func (s *Source) Reload(rules *hotparam.Rules) error {
	c := s.cfg
	if c.Rules = rules; rules == nil {
		return errors.New("graphite source: no rules")
	}
	if err := c.validate(); err != nil {
		return err
	}
	s.busy.Lock()
	defer s.busy.Unlock()
	if was := s.job.cfg.Rules.Namespace; rules.Namespace != was {
		return fmt.Errorf("graphite source: the namespace is %q now, was %q: it changes at a restart only", rules.Namespace, was)
	}
	s.job = s.job.withRules(&c)
	s.show()
	return nil
}

// withRules returns the job that goes on with other rules, and publishes what changes at once.
func (j *job) withRules(c *Config) *job {
	next := newJob(c, j.client, j.patience)
	next.tooMuch, next.failures, next.next, next.outage = j.tooMuch, j.failures, j.next, j.outage
	next.differs, next.shown = j.differs, j.shown
	change := hotparam.Change{}
	for _, h := range append(j.detector.Listed(), j.adopted...) {
		if rule := next.ruleOf(h.Rule); rule != nil && rule.SameKeys(j.ruleOf(h.Rule)) && !allows(rule, h.Text) {
			h.Limit, h.Burst, h.Mode = limitOf(rule, h.Text).Published()
			change.Hot = append(change.Hot, h)
			continue
		}
		h.Until = j.when(j.known)
		change.Cool = append(change.Cool, h)
	}
	next.adopted = change.Hot
	next.hot.Publish(change)
	next.nameHot()
	return next
}

// ruleOf returns the rule with an id and a threshold, or nil.
func (j *job) ruleOf(id string) *hotparam.Rule {
	if at, ok := j.byRule[id]; ok {
		return &j.cfg.Rules.Rules[j.watches[at].number]
	}
	return nil
}

func allows(rule *hotparam.Rule, text string) bool {
	x := rule.Exception(text)
	return x != nil && x.Action == hotparam.Allow
}

// limitOf returns the limit that applies to a key, or nil.
func limitOf(rule *hotparam.Rule, text string) *hotparam.Limit {
	if x := rule.Exception(text); x != nil && x.Limit != nil {
		return x.Limit
	}
	return rule.Limit
}
