package kafkasink

import (
	"github.com/hotparam/hotparam/collector/internal/former"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// SetRules implements [collector.RulesSink]. Counts of removed rules are sent as before:
// an aggregator that has them still, or again, needs them, and others ignore the lines.
func (s *Sink) SetRules(rules *rules.Rules) {
	if rules != nil {
		s.pack.setRules(rules)
	}
}

func (p *packer) setRules(rules *rules.Rules) {
	p.head.Groups = wire.GroupsMark(rules)
	for i := range rules.Rules {
		rule := &rules.Rules[i]
		prefix := rule.CountPrefix(rules.Namespace)
		head := string(wire.AppendKey([]byte(prefix), wire.Plain, nil))
		p.rules[rule.ID] = &packRule{prefix: prefix, head: head, whole: rule.Whole()}
	}
	former.Update(&p.former, p.rules, rules)
}
