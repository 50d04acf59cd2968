package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// members checks the heartbeats of instances and aggregators, and whether the counts of all
// instances reach the aggregator.
func (x *examination) members(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	members, err := hotkeys.ListMembers(call, x.Client, x.Namespace)
	if err != nil {
		x.add("rules", Unknown, fmt.Sprintf("heartbeats cannot be read: %v", err), "")
	}
	heard, err := hotkeys.ListInstances(call, x.Client, x.Namespace)
	if err != nil {
		x.add("counts", Unknown, fmt.Sprintf("the instances that the aggregator hears cannot be read: %v", err), "")
	} else {
		x.checkCounts(members, heard)
	}
	if len(members) == 0 {
		x.add("rules", Unknown, "no heartbeats: all members are of an earlier version, may not write them, or have ended", "give the users of Redis the rights that docs/REDIS.md lists for heartbeats")
		return
	}
	x.versions(members)
	x.clocks(members)
	x.losses(members)
	x.memory(ctx, members)
	x.places(members)
	x.tables(members)
}

// checkCounts checks that the counts of all running instances arrive.
func (x *examination) checkCounts(members []published.Member, checkCounts []published.Instance) {
	const mend = "check that its statsd.addresses, or kafka, reaches an aggregator of this namespace; check firewalls, and the aggregator's log if the file sets trust"
	lately := make(map[string]time.Time)
	for _, i := range checkCounts {
		lately[i.Name] = i.Heard
	}
	if !x.published {
		x.add("counts", Unknown, "no aggregator publishes, so the instances that send counts are unknown", "")
		return
	}
	if x.Nameless {
		x.add("counts", Unknown, "counts come without the names of instances (a StatsD that is not ours, or statsd.meta: false)", "")
		return
	}
	bad := 0
	for _, m := range members {
		if m.Role != published.RoleInstance {
			continue
		}
		if _, found := lately[m.Name]; !found && time.Since(m.Started) > heardWithin {
			bad++
			x.add("counts", Problem, fmt.Sprintf("instance %s runs, but its counts do not reach the aggregator", m.Name), mend)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(lately)) {
		if age := time.Since(lately[name]); age > heardWithin {
			bad++
			x.add("counts", Problem, fmt.Sprintf("the last counts of instance %s arrived %.0f s ago", name, age.Seconds()), "if it still runs: "+mend)
		}
	}
	switch {
	case bad > 0:
	case len(checkCounts) == 0:
		x.add("counts", Problem, "no instance sends counts to the aggregator", "start one, or test the path with hotparam emit --config FILE 'GET /path?name=value' 100; "+mend)
	default:
		x.add("counts", OK, "the aggregator receives counts of "+hotwords.Plural(len(checkCounts), "instance"), "")
	}
}

// versions checks that all members have the same rules, and that the file has them too.
func (x *examination) versions(members []published.Member) {
	membersOf := make(map[string][]string)
	for _, m := range members {
		version := cmp.Or(m.RulesVersion, "unknown")
		membersOf[version] = append(membersOf[version], string(m.Role)+" "+m.Name)
		if m.Problem != "" {
			x.add("rules", Problem, fmt.Sprintf("%s %s: %s", m.Role, m.Name, m.Problem), "correct its file (hotparam rules lint FILE); until then it keeps the last valid one")
		}
	}
	delete(membersOf, "unknown")
	switch file := x.Rules; {
	case len(membersOf) > 1:
		var parts []string
		for _, version := range slices.Sorted(maps.Keys(membersOf)) {
			parts = append(parts, version+" at "+someOf(membersOf[version]))
		}
		mend := "give all of them the same file; a changed file is read automatically, and on SIGHUP"
		if slices.ContainsFunc(slices.Collect(maps.Keys(membersOf)), isEarlier) {
			mend += "; a version of 12 digits is of an earlier release, which hashes the text of the file: it cannot be compared, so finish the upgrade"
		}
		x.add("rules", Problem, "rules differ: "+strings.Join(parts, "; "), mend)
	case len(membersOf) == 0:
		x.add("rules", Unknown, "no member says which rules it has", "")
	case file != nil && membersOf[file.Version] == nil:
		x.add("rules", Problem, fmt.Sprintf("all members have rules %s, and this file is %s", slices.Collect(maps.Keys(membersOf))[0], file.Version), "give them this file, or name theirs by --config")
	default:
		x.add("rules", OK, fmt.Sprintf("rules %s at each of %s", slices.Collect(maps.Keys(membersOf))[0], hotwords.Plural(len(members), "member")), "")
	}
}

// isEarlier reports whether a version of rules is from an earlier release, which hashed the
// file's text. Since then a version hashes only what affects decisions.
func isEarlier(version string) bool { return len(version) == 12 }

func (x *examination) clocks(members []published.Member) {
	bad, known := 0, 0
	for _, m := range members {
		if !m.OffsetKnown {
			continue
		}
		if known++; m.Offset.Abs() > maxOffset {
			bad++
			x.add("clocks", Problem, fmt.Sprintf("the clock of %s %s is %s of Redis's", m.Role, m.Name, offsetWords(m.Offset)), "have it follow NTP (chrony or systemd-timesyncd)")
		}
	}
	switch {
	case bad > 0:
	case known == 0:
		x.add("clocks", Unknown, "no member has measured its clock yet", "")
	case !slices.ContainsFunc(x.found, func(f Finding) bool { return f.Check == "clocks" }):
		x.add("clocks", OK, fmt.Sprintf("%s within %v of Redis's", hotwords.Plural(known, "clock"), maxOffset), "")
	}
}

// someOf joins at most five names, and the number of the others.
func someOf(names []string) string {
	const limit = 5
	if len(names) > limit {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), len(names)-limit)
	}
	return strings.Join(names, ", ")
}
