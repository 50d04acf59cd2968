package hotwords

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// Also describes the settings outside of the rules that differ from their defaults, one line
// each.
func Also(ruleset *rules.Rules) (lines []string) {
	for _, words := range []string{redactWords(ruleset.Redact.Names), clientWords(&ruleset.Client), bodiesWords(ruleset), maxKeysWords(ruleset), daysWords(ruleset)} {
		if words != "" {
			lines = append(lines, words)
		}
	}
	return lines
}

// Rule describes a rule in words, including its defaults.
func Rule(r *rules.Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", r.ID, r.Match.Route)
	for i, q := range r.Match.Query {
		fmt.Fprintf(&b, "%c%s=%s", "?&"[min(i, 1)], q.Name, q.Value)
	}
	if r.Ignore {
		return b.String() + ": exempt from all rules"
	}
	b.WriteString(byWords(r.By))
	var parts []string
	if len(r.Hot) > 0 {
		var hot []string
		for i := range r.Hot {
			hot = append(hot, When(&r.Hot[i], r.Count))
		}
		parts = append(parts, "hot "+strings.Join(hot, " or "))
	}
	if r.Backend != "" {
		parts = append(parts, "together with the rules of "+r.Backend)
	}
	if r.Limit != nil {
		parts = append(parts, Limit(r, r.Limit))
	} else if len(r.Hot) > 0 {
		parts = append(parts, "listed only")
		if r.HasCost() {
			parts = append(parts, "not held, so only suspected")
		}
	}
	if r.OnHot != nil {
		parts = append(parts, onHotWords(r.OnHot))
	}
	if len(r.Except) > 0 {
		parts = append(parts, exceptWords(r.Except))
	}
	if r.DependsOnBody() {
		parts = append(parts, "a body that cannot be read: "+unreadWords[r.Unread])
	}
	return b.String() + ": " + strings.Join(parts, "; ")
}

func byWords(selection rules.By) string {
	var names []string
	for _, p := range selection.Names {
		names = append(names, nameWords(p))
	}
	list := strings.Join(names, ", ")
	switch {
	case selection.Kind == rules.ByAll:
		return " by all parameters"
	case selection.Kind == rules.ByEach:
		return " by each parameter"
	case selection.Kind == rules.ByNames:
		return " by " + list
	case selection.Kind == rules.ByCombinations && list == "":
		return " by combinations of all parameters"
	case selection.Kind == rules.ByCombinations:
		return " by combinations of " + list
	}
	return ""
}

func nameWords(p rules.Param) string {
	if p.Source == rules.Query {
		return p.Name
	}
	return p.Source.String() + ":" + p.Name
}

// redactWords describes which parameters appear in keys as hashes. It returns "" if none do.
func redactWords(names []rules.Param) string {
	if len(names) == 0 {
		return ""
	}
	var words []string
	for _, p := range names {
		words = append(words, nameWords(p))
	}
	return "keys have a hash in place of the value of " + strings.Join(words, ", ")
}

var unreadWords = map[rules.Unread]string{
	rules.UnreadLimit: "held to one key", rules.UnreadPass: "not concerned", rules.UnreadReject: "refused",
}

// bodiesWords describes how much of bodies is read. It returns "" if no rule reads one.
func bodiesWords(ruleset *rules.Rules) string {
	reads := slices.ContainsFunc(ruleset.Rules, func(r rules.Rule) bool {
		return slices.ContainsFunc(r.Named(), func(p rules.Param) bool { return p.Source.ReadsBody() })
	})
	if !reads {
		return ""
	}
	b := ruleset.Bodies.WithDefaults()
	return fmt.Sprintf("bodies are read up to %s, %s at a time", Size(b.Max), Size(b.Total))
}

// maxKeysWords describes how many keys each limit has places for. It returns "" for the default.
func maxKeysWords(rules *rules.Rules) string {
	if rules.LimitKeys == 0 {
		return ""
	}
	return fmt.Sprintf("each limit has places for %d keys in a process", rules.LimitKeys)
}

// daysWords describes when rules with a jump over days fall back to the recent past, and where
// the days are kept. It returns "" if there is no such rule.
func daysWords(ruleset *rules.Rules) string {
	var ids []string
	for i := range ruleset.Rules {
		if slices.ContainsFunc(ruleset.Rules[i].Hot, func(t rules.Threshold) bool { return t.Over == rules.OverDay }) {
			ids = append(ids, ruleset.Rules[i].ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("jumps over days of %s: on the first day, and after a change of id, by or count, they are over the recent past until the same hour of a day before is known; aggregators keep the hours in Redis, as hotparam-days:{%s}:*",
		strings.Join(ids, ", "), ruleset.Namespace)
}

// clientWords describes where a client's address is found. It returns "" if it is the peer's.
func clientWords(c *rules.Client) string {
	if c.Header == "" {
		return ""
	}
	var trusted []string
	for _, p := range c.Trusted {
		trusted = append(trusted, p.String())
	}
	if c.TrustUnix {
		trusted = append(trusted, "Unix sockets")
	}
	return fmt.Sprintf("clients behind %s are those that %s names", strings.Join(trusted, ", "), c.Header)
}

// When describes when a key becomes hot and when it cools: "at 200/s (cool below 160, …)".
func When(t *rules.Threshold, unit rules.Unit) string {
	if t.Kind == rules.Cost {
		return "when it slows the others down (cool once it no longer does)"
	}
	rate := Rate(t.Rate, unit)
	exit := t.Exit.Decimal(100) + "% of that"
	enter := rate
	if compared := t.Compared(); compared != "" {
		enter = compared + " and " + rate
	} else {
		exit = Count(t.ExitCount(t.Rate.N), unit)
	}
	terms := []string{"cool below " + exit}
	if t.CoolDown > 0 {
		terms = append(terms, "for "+Span(t.CoolDown))
	}
	if t.Hold > 0 {
		terms = append(terms, "after "+Span(t.Hold)+" at the earliest")
	}
	return "at " + enter + " (" + strings.Join(terms, ", ") + ")"
}

func exceptWords(all []rules.Exception) string {
	var n [rules.Block + 1]int
	for i := range all {
		n[all[i].Action]++
	}
	var parts []string
	for action, word := range [...]string{rules.Adjust: "adjusted", rules.Allow: "allowed", rules.Block: "blocked"} {
		if n[action] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[action], word))
		}
	}
	return "exceptions: " + strings.Join(parts, ", ")
}
