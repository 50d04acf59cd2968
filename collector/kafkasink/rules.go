package kafkasink

import (
	"slices"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// maxFormer bounds how many rules that are gone are known.
const maxFormer = 1000

// SetRules implements [collector.RulesSink]. Counts of rules that are gone are sent as before:
// an aggregator that has them still, or again, needs them, and others ignore the lines.
func (s *Sink) SetRules(rules *hotparam.Rules) {
	if rules != nil {
		s.pack.setRules(rules)
	}
}

func (p *packer) setRules(rules *hotparam.Rules) {
	if p.encoding != wire.Strict {
		p.head.Groups = wire.GroupsMark(rules)
	}
	present := make(map[string]bool)
	for i := range rules.Rules {
		rule := &rules.Rules[i]
		prefix := rule.CountPrefix(rules.Namespace)
		head := string(wire.AppendKey([]byte(prefix), p.encoding, nil))
		p.rules[rule.ID] = &packRule{prefix: prefix, head: head, whole: rule.Whole()}
		present[rule.ID] = true
	}
	p.former = slices.DeleteFunc(p.former, func(id string) bool { return present[id] })
	for id := range p.rules {
		if !present[id] && !slices.Contains(p.former, id) {
			p.former = append(p.former, id)
		}
	}
	for len(p.former) > maxFormer {
		delete(p.rules, p.former[0])
		p.former = p.former[1:]
	}
}
