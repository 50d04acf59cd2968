package config

import "fmt"

// conflict is a setting that another one contradicts.
type conflict struct{ section, field, message, hint string }

// conflicts are the settings that contradict each other: how counts travel, who
// gets which, and who publishes.
func (f *File) conflicts() []conflict {
	a, several, all := f.Aggregator, len(f.StatsD.Addresses) > 1, f.StatsD.Spread == SpreadAll
	var found []conflict
	add := func(section, field, message, hint string) {
		found = append(found, conflict{section, field, message, hint})
	}
	switch {
	case a.Source == SourceKafka && a.Lease:
		add("aggregator", "lease", "with source: kafka each partition has one owner already", "remove it")
	case a.Source == SourceKafka:
	case a.Lease && a.Name != "":
		add("aggregator", "lease", "aggregators with names share the keys, those with a lease all get everything", "remove name, or remove lease")
	case a.Lease && several && !all:
		add("aggregator", "lease", "with spread: hash each aggregator gets keys of its own, and one alone would publish its own", "add spread: all to statsd, or remove lease and give each a name")
	case !a.Lease && several && all:
		add("statsd", "spread", "with all, each aggregator would publish everything, against the others", "add lease: true to aggregator")
	}
	return found
}

// Agree tells of settings that contradict each other. A file that was read
// without problems has none; flags and variables may bring some in.
func (f *File) Agree() error {
	if found := f.conflicts(); len(found) > 0 {
		c := found[0]
		return fmt.Errorf("%s.%s: %s (%s)", c.section, c.field, c.message, c.hint)
	}
	return nil
}

// agree reports settings that contradict each other.
func (d *decoder) agree(f *File, top values) {
	for _, c := range f.conflicts() {
		section := top.get(c.section)
		for _, field := range section.fields {
			if field.name == c.field {
				d.report(field.value.at, c.hint, "%s.%s: %s", c.section, c.field, c.message)
			}
		}
	}
}
