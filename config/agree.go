package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// conflict is a setting that another one contradicts.
type conflict struct{ section, field, message, hint string }

// conflicts returns the settings that contradict each other about how counts travel, which
// aggregator gets which counts, and which publishes.
func (f *File) conflicts() []conflict {
	a, several, all := f.Aggregator, len(f.StatsD.Addresses) > 1, f.StatsD.Spread == SpreadAll
	var found []conflict
	add := func(section, field, message, hint string) {
		found = append(found, conflict{section, field, message, hint})
	}
	switch {
	case a.Source == SourceNone:
		return nil // counts do not travel
	case a.Source == SourceKafka && a.Lease:
		add("aggregator", "lease", "with source: kafka each partition has one owner already", "remove it")
	case a.Source == SourceKafka:
	case a.Lease && a.Name != "":
		add("aggregator", "lease", "aggregators with names each get a part of the keys; aggregators with a lease each get all keys", "remove name, or remove lease")
	case a.Source == SourceGraphite:
		found = append(found, f.graphiteConflicts()...)
	case a.Lease && several && !all:
		add("aggregator", "lease", "with spread: hash each aggregator gets a part of the keys, and the one with the lease would publish only its part", "add spread: all to statsd, or remove lease and give each a name")
	case !a.Lease && several && all:
		add("statsd", "spread", "with all, each aggregator would publish everything, in conflict with the others", "add lease: true to aggregator")
	}
	found = append(found, f.trustConflicts()...)
	if a.Readers > 1 && len(a.Listen) > 0 && !anyListener(a.Listen, func(network string) bool { return network == "udp" }) {
		add("aggregator", "readers", "readers share a UDP address, and listen has none", "remove it")
	}
	return found
}

// anyListener reports whether the network of one of the addresses is one of those.
func anyListener(addresses []string, isOne func(network string) bool) bool {
	return slices.ContainsFunc(addresses, func(s string) bool {
		address, err := wire.ParseAddress(s)
		return err != nil || isOne(address.Network) // a bad address has been reported
	})
}

// graphiteConflicts returns the settings that Graphite, or a StatsD server that is not ours,
// cannot follow.
func (f *File) graphiteConflicts() []conflict {
	var found []conflict
	if len(f.StatsD.Addresses) > 1 && f.StatsD.Spread == SpreadAll {
		found = append(found, conflict{"statsd", "spread", "with all, several StatsD servers would write the same series to Graphite and overwrite each other's points", "spread: hash sends each key to one of them"})
	}
	s := f.StatsD.WithDefaults(f.Aggregator)
	if s.Encoding != wire.Strict.String() {
		found = append(found, conflict{"statsd", "encoding", "with source: graphite keys pass StatsD and Graphite, which would split plain ones", "encoding: strict, or none"})
	}
	if *s.Meta {
		found = append(found, conflict{"statsd", "meta", "with source: graphite meta lines are not read", "meta: false, or none"})
	}
	if ids := rulesWithCost(f.Rules.Rules); ids != "" {
		found = append(found, conflict{"aggregator", "source", "graphite carries counts alone, not the times that hot.cost needs, of rule " + ids, "source: statsd or kafka; or another threshold"})
	}
	step := f.Graphite.WithDefaults().Step
	var bad []string
	for i := range f.Rules.Rules {
		r := &f.Rules.Rules[i]
		for _, t := range r.Hot {
			if t.Rate.Per%step != 0 {
				bad = append(bad, fmt.Sprintf("%v of rule %s", t.Rate.Per, r.ID))
			}
		}
	}
	if len(bad) > 0 {
		found = append(found, conflict{"graphite", "step", fmt.Sprintf("each window must be a whole multiple of %v, because counts come in such steps; these are not: %s", step, strings.Join(bad, ", ")), "other windows; or flush more often in StatsD, and set step to match"})
	}
	return found
}

// rulesWithCost returns the ids of the rules with hot.cost, or "".
func rulesWithCost(all []rules.Rule) string {
	var ids []string
	for i := range all {
		if all[i].HasCost() {
			ids = append(ids, all[i].ID)
		}
	}
	return strings.Join(ids, ", ")
}

// Agree returns an error if settings contradict each other. A file that was read without
// problems has no such settings; flags and variables may add some.
func (f *File) Agree() error {
	if found := f.conflicts(); len(found) > 0 {
		c := found[0]
		return fmt.Errorf("%s.%s: %s (%s)", c.section, c.field, c.message, c.hint)
	}
	return nil
}

// agree reports settings that contradict each other at their places. A setting that the file
// lacks is reported at the setting that chooses the source.
func (d *decoder) agree(f *File, root *fileNode, top values) {
	for i := range f.Rules.Rules {
		if f.Aggregator.Source == SourceNone && len(f.Rules.Rules[i].Hot) > 0 {
			d.report(d.placeOf(root, fmt.Sprintf("rules[%d].hot", i)).node.pos, "remove hot, and every key of the rule is limited; or choose another source",
				"hot: aggregator.source: none disables counting, so no key becomes hot")
		}
	}
	for _, c := range f.conflicts() {
		field := top.get(c.section).fieldValue(c.field)
		if field == nil {
			field = top.get("aggregator").fieldValue("source")
		}
		d.report(field.pos, c.hint, "%s.%s: %s", c.section, c.field, c.message)
	}
}

// fieldValue returns the value of a map's field, or nil if there is none.
func (n *fileNode) fieldValue(name string) *fileNode {
	if n == nil {
		return nil
	}
	if value := n.child(name); value != nil && value.kind != nullKind {
		return value
	}
	return nil
}
