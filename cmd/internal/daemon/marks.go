package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// markEvents returns the companion that marks the events of keys in the history. The report calls its
// marker for other rules, other programs and faults.
func markEvents(a *accompanied, report *fleetReport, set *settings) (companion, error) {
	follower, err := live.NewFollower(set.Redis, live.Config{Namespace: set.File.Rules.Namespace}, "")
	if err != nil {
		return companion{}, err
	}
	m := &marker{histories: set.history, ready: a.ready, version: func() string { return a.file.Stats().Version }}
	report.marks = m
	return companion{
		run:     func(ctx context.Context) error { return follower.Run(ctx, m.events) },
		collect: set.history.collect,
	}, nil
}

// marker marks changes. It keeps the state at the last look.
type marker struct {
	*histories
	ready   func() (string, error)
	version func() string

	rules, programs, fault string
	grown                  [2][]admitted.Growth // reports of instances at the last looks
}

// addRefused adds to the history what limits refused of hot keys. That waits for two looks, since
// then the seconds are counted in which it happened.
func (m *marker) addRefused(grown []admitted.Growth) {
	for _, g := range m.grown[0] {
		if n := g.Outcomes.Refused; n > 0 {
			m.histories.addRefused(g.Owner, g.Key, n, g.From.Unix(), g.To.Unix()+1)
		}
	}
	m.grown = [2][]admitted.Growth{m.grown[1], grown}
}

// events marks events of keys. Those of hot keys belong to the owner that published them.
func (m *marker) events(u live.Update) error {
	for i := range u.Events {
		e := &u.Events[i]
		mark := history.Mark{At: e.At.Unix(), Rule: e.Rule, Text: e.Key, Words: e.Why}
		switch e.Type {
		case live.Hot:
			mark.Kind = history.MarkHot
			m.mark(e.By, mark)
		case live.Cool:
			mark.Kind = history.MarkCool
			m.mark(e.By, mark)
		default:
			mark.Kind = history.MarkControl
			mark.Words = controlWords(e)
			m.mark("", mark)
		}
	}
	return nil
}

// controlWords describes an event of a control: "block until 14:40 by ann: a scraper".
func controlWords(e *live.Event) string {
	words := string(e.Type)
	if !e.Until.IsZero() {
		words += " until " + e.Until.UTC().Format("15:04") + " UTC"
	}
	if e.By != "" {
		words += " by " + e.By
	}
	if e.Why != "" {
		words += ": " + e.Why
	}
	return words
}

// changed marks a value that is another one than the last. The first is no change.
func (m *marker) changed(last *string, now string, kind history.Kind, words string) {
	if *last != now && *last != "" {
		m.mark("", history.Mark{At: time.Now().Unix(), Kind: kind, Words: words})
	}
	*last = now
}

// lookAtSelf marks the changes in this process since the last look.
func (m *marker) lookAtSelf() {
	version := m.version()
	m.changed(&m.rules, version, history.MarkRules, "rules version "+version)
	const healthy = "ready"
	state, words := healthy, "ready again"
	if _, err := m.ready(); err != nil {
		state = "not ready: " + err.Error()
		words = state
		if strings.HasPrefix(m.fault, "not ready") {
			m.fault = state // the same fault, in other words
		}
	}
	if m.fault != "" || state == healthy { // at the start, a missing part is no fault
		m.changed(&m.fault, state, history.MarkFault, words)
	}
}

// lookAtPrograms marks other programs of instances.
func (m *marker) lookAtPrograms(members []published.Member) {
	if programs := programsOf(members); programs != "" {
		m.changed(&m.programs, programs, history.MarkDeploy, programs)
	}
}

// programsOf describes the versions of the instances' programs: "3 instances of v1.8.2, 1 of v1.8.1".
// It returns "" if there are none.
func programsOf(members []published.Member) string {
	counts := make(map[string]int)
	var versions []string
	for i := range members {
		if p := members[i].Program; members[i].Role == published.RoleInstance && p != "" {
			if counts[p] == 0 {
				versions = append(versions, p)
			}
			counts[p]++
		}
	}
	slices.Sort(versions)
	var parts []string
	for _, v := range versions {
		n := fmt.Sprint(counts[v])
		if parts == nil {
			n = hotwords.Plural(counts[v], "instance")
		}
		parts = append(parts, n+" of "+v)
	}
	return strings.Join(parts, ", ")
}
