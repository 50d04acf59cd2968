package graphitesource

import (
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Reload puts other rules in force while the source runs. The next poll reads all points again
// that are in some window. From then on the windows of these rules are known, including new
// ones. Hot keys stay hot until those points say otherwise. Keys of rules that were removed cool
// at once, and changed limits are published at once. The rules must have the namespace of the
// present ones. If Reload returns an error, the present rules stay in force.
//
// It waits for the end of a poll that is in progress. It is safe for concurrent use.
func (s *Source) Reload(rules *rules.Rules) error {
	c := s.cfg
	c.Rules = rules
	if err := c.checkWindows(); err != nil {
		return err
	}
	s.busy.Lock()
	defer s.busy.Unlock()
	s.job = s.job.withRules(&c)
	s.show()
	return nil
}

// withRules returns the job that continues with other rules, and publishes immediate changes.
func (j *job) withRules(c *Config) *job {
	next := newJob(c, j.client, j.patience)
	next.tooMuch, next.failures, next.next, next.outage = j.tooMuch, j.failures, j.next, j.outage
	next.differs, next.shown = j.differs, j.shown
	var hot, cool []published.Hot
	for _, h := range append(j.detector.Listed(), j.adopted...) {
		if rule := next.ruleOf(h.Rule); rule != nil && rule.SameKeys(j.ruleOf(h.Rule)) {
			hot = append(hot, h)
		} else {
			cool = append(cool, h)
		}
	}
	next.keepHot(hot, cool, j.when(j.known))
	return next
}

// inheritHot keeps keys hot that another process published. Keys that are hot here as well stay as
// this process published them.
func (j *job) inheritHot(hot []published.Hot) {
	if len(hot) == 0 {
		return
	}
	j.keepHot(hot, nil, time.Now())
}

// keepHot keeps keys hot until the next points, which decide, are counted. Keys that are not hot
// here yet are published with the limits of the present rules. The keys in cool, and those whose
// rule was removed or whose value is allowed, cool as of now.
func (j *job) keepHot(hot, cool []published.Hot, now time.Time) {
	change := published.Change{Cool: cool}
	for _, h := range hot {
		rule := j.ruleOf(h.Rule)
		if rule == nil || allows(rule, h.Text) {
			change.Cool = append(change.Cool, h)
			continue
		}
		j.adopted = append(j.adopted, h)
		if _, isHot := j.hot.keys[h.Key]; !isHot {
			h.Limit, h.Burst, h.Mode = limitOf(rule, h.Text).Published()
			change.Hot = append(change.Hot, h)
		}
	}
	for i := range change.Cool {
		change.Cool[i].Until = now
	}
	if !change.Empty() {
		j.hot.Publish(change)
	}
	j.nameHot()
}

// ruleOf returns the rule with this id if it has thresholds, or nil.
func (j *job) ruleOf(id string) *rules.Rule {
	if i, ok := j.byRule[id]; ok {
		return &j.cfg.Rules.Rules[j.watches[i].number]
	}
	return nil
}

func allows(rule *rules.Rule, text string) bool {
	x := rule.Exception(text)
	return x != nil && x.Action == rules.Allow
}

// limitOf returns the limit that applies to a key, or nil.
func limitOf(rule *rules.Rule, text string) *rules.Limit {
	if x := rule.Exception(text); x != nil && x.Limit != nil {
		return x.Limit
	}
	return rule.Limit
}
