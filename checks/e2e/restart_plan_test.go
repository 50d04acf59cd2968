package e2e

import (
	"fmt"
	"strings"
	"time"
)

// restartTimes are the panes of 100 ms in which events happen: aggregators restart twice, the
// rules change after the first restart, then all traffic ends.
type restartTimes struct {
	First, Second, End, Panes int64
	Long                      bool // with windows of ten minutes
}

var (
	shortRestarts = restartTimes{First: 160, Second: 300, End: 350, Panes: 450}
	longRestarts  = restartTimes{First: 900, Second: 2400, End: 3000, Panes: 7200, Long: true}
)

// reload returns the pane in which all aggregators read other rules.
func (x restartTimes) reload() int64 { return x.First + 6 }

// restartTerm is a threshold of a rule.
type restartTerm struct {
	kind   string
	n      int64 // the count, or the least
	window time.Duration
	part   int64 // percent of a share, multiple of a jump, places of a top
	later  int64 // n after the reload, or 0 for the same
}

const (
	restartHold     = time.Second
	restartCoolDown = 500 * time.Millisecond
	restartExit     = 80 // percent
)

func (t *restartTerm) countAfter(reloaded bool) int64 {
	if reloaded && t.later > 0 {
		return t.later
	}
	return t.n
}

// name returns the threshold's name among the holders of an entry.
func (t *restartTerm) name() string { return t.kind + "/" + t.window.String() }

func (t *restartTerm) yaml(reloaded bool) string {
	n, what := fmt.Sprintf("%d/%v", t.countAfter(reloaded), t.window), ""
	switch t.kind {
	case "rate":
		what = "rate: " + n
	case "share":
		what = fmt.Sprintf("share: %d%%, min: %s", t.part, n)
	case "jump":
		what = fmt.Sprintf("jump: %dx, min: %s", t.part, n)
	case "top":
		what = fmt.Sprintf("top: %d, min: %s", t.part, n)
	}
	return fmt.Sprintf("{%s, exit: %d%%, hold: %v, cool_down: %v}", what, restartExit, restartHold, restartCoolDown)
}

// restartRule is a rule. Values that begin with vip have another rate over the window of its
// first threshold, and values that begin with free are allowed.
type restartRule struct {
	id    string
	terms []restartTerm
	vip   int64
}

// rules returns the rules, at most as many as instances send sums for.
func (x restartTimes) rules() []restartRule {
	const s, m = time.Second, time.Minute
	rules := []restartRule{
		{"rate1", []restartTerm{{kind: "rate", n: 26, window: s}}, 60},
		{"rate10", []restartTerm{{kind: "rate", n: 100, window: 10 * s}}, 300},
		{"rate60", []restartTerm{{kind: "rate", n: 120, window: m}}, 0},
		{"share1", []restartTerm{{kind: "share", n: 10, window: s, part: 20}}, 0},
		{"share10", []restartTerm{{kind: "share", n: 60, window: 10 * s, part: 20}}, 0},
		{"share60", []restartTerm{{kind: "share", n: 100, window: m, part: 20}}, 0},
		{"jump1", []restartTerm{{kind: "jump", n: 20, window: s, part: 4}}, 0},
		{"jump10", []restartTerm{{kind: "jump", n: 60, window: 10 * s, part: 4}}, 0},
		{"top1", []restartTerm{{kind: "top", n: 8, window: s, part: 2}}, 0},
		{"top10", []restartTerm{{kind: "top", n: 60, window: 10 * s, part: 2}}, 0},
		{"top60", []restartTerm{{kind: "top", n: 60, window: m, part: 2}}, 0},
		{"raised", []restartTerm{{kind: "rate", n: 100, window: 10 * s, later: 250}}, 0},
		{"lowered", []restartTerm{{kind: "rate", n: 250, window: 10 * s, later: 100}}, 0},
		{"mix", []restartTerm{
			{kind: "rate", n: 26, window: s}, {kind: "rate", n: 100, window: 10 * s}, {kind: "rate", n: 200, window: m},
			{kind: "share", n: 60, window: 10 * s, part: 40}, {kind: "jump", n: 40, window: 10 * s, part: 5}, {kind: "top", n: 15, window: s, part: 1},
		}, 60},
	}
	if x.Long {
		rules = append(rules,
			restartRule{"rate600", []restartTerm{{kind: "rate", n: 600, window: 10 * m}}, 0},
			restartRule{"top600", []restartTerm{{kind: "top", n: 300, window: 10 * m, part: 2}}, 0})
	}
	return rules
}

// rulesYAML returns rules as in a file. Their counts have the same names in all namespaces. None has
// a limit, so that every request is counted.
func rulesYAML(rules []restartRule, reloaded bool) string {
	var text strings.Builder
	for _, r := range rules {
		terms := make([]string, len(r.terms))
		for i := range r.terms {
			terms[i] = r.terms[i].yaml(reloaded)
		}
		fmt.Fprintf(&text, `
  - id: %s
    match: {route: "GET /%[1]s"}
    by: [q]
    prefix: restarts.%[1]s
    hot: [%s]
`, r.id, strings.Join(terms, ", "))
		if r.vip > 0 {
			fmt.Fprintf(&text, "    except: [{values: {q: \"vip*\"}, hot: %d/%v}]\n    allow: {q: \"free*\"}\n", r.vip, r.terms[0].window)
		}
	}
	return text.String()
}

// plan returns the traffic: keys that stay, keys that end or begin around each restart, and keys
// that are never hot.
func (x restartTimes) plan() *lossPlan {
	p := &lossPlan{rules: x.rules(), panes: x.Panes}
	counted := func(rule string, each, every, lead int64) {
		add := func(value string, from, to int64) {
			p.add(lossKey{rule: rule, value: value, from: max(from, 5), to: to, each: each, every: every})
		}
		add("steady", 5, x.End)
		add("free", 5, x.End)
		for i, to := range []int64{x.First - 7, x.First + 4, x.First + 50, x.Second - 7, x.Second + 10} {
			add(fmt.Sprint("ends", i), to-lead, to)
		}
		add("rises0", x.First-5, x.Second-30)
		add("rises1", x.First+20, x.End)
	}
	counted("rate1", 3, 1, 40)
	counted("rate10", 2, 1, 90)
	counted("rate60", 1, 1, x.Panes)
	p.add(lossKey{rule: "rate1", value: "near", to: x.End, each: 2})
	p.add(lossKey{rule: "rate1", value: "vip", from: 5, to: x.Second + 10, each: 7})
	p.add(lossKey{rule: "rate1", value: "vip-near", to: x.End, each: 4})
	p.add(lossKey{rule: "rate10", value: "near", to: x.End, each: 9, every: 10})
	p.add(lossKey{rule: "rate10", value: "edge", to: x.End, each: 12, every: 10})
	p.add(lossKey{rule: "rate10", value: "vip-near", to: x.End, each: 2})
	p.add(lossKey{rule: "rate60", value: "near", to: x.End, each: 1, every: 6})
	if x.Long {
		counted("rate600", 1, 1, x.Panes)
		p.add(lossKey{rule: "rate600", value: "near", to: x.End, each: 1, every: 12})
	}

	// A rule's third key is the second highest while its second has ended and its fourth has not
	// begun.
	compared := map[string]int64{"share1": 1, "share10": 1, "share60": 1, "top1": 0, "top10": 0, "top60": 0}
	if x.Long {
		compared["top600"] = 0
	}
	for _, r := range p.rules {
		shares, ok := compared[r.id]
		if !ok {
			continue
		}
		p.add(lossKey{rule: r.id, value: "first", from: 5, to: x.End, each: 3 - shares})
		p.add(lossKey{rule: r.id, value: "second", from: 5, to: x.First + 4, each: 2})
		p.add(lossKey{rule: r.id, value: "third", from: 5, to: x.End, each: 1})
		p.add(lossKey{rule: r.id, value: "fourth", from: x.Second + 10, to: x.End, each: 4})
		for i := range 12 * shares {
			p.add(lossKey{rule: r.id, value: fmt.Sprint("other", i), to: x.End, each: 1, every: 10})
		}
	}

	for i, from := range []int64{x.First - 20, x.First + 40, x.Second - 20} {
		p.add(lossKey{rule: "jump1", value: fmt.Sprint("jumps", i), from: from, to: from + 60, before: 1, each: 15, every: 5})
	}
	for i, from := range []int64{x.First - 50, x.Second - 60} {
		p.add(lossKey{rule: "jump10", value: fmt.Sprint("jumps", i), from: from, to: x.End, before: 1, each: 10, every: 5})
	}
	p.add(lossKey{rule: "jump10", value: "ends", from: x.First - 50, to: x.First - 5, before: 1, each: 10, every: 5})
	p.add(lossKey{rule: "jump10", value: "even", to: x.End, each: 8, every: 5})

	for _, rule := range []string{"raised", "lowered"} {
		p.add(lossKey{rule: rule, value: "middle", from: 5, to: x.End, each: 2})
		p.add(lossKey{rule: rule, value: "high", from: 5, to: x.Second + 10, each: 3})
		p.add(lossKey{rule: rule, value: "low", to: x.End, each: 8, every: 10})
	}

	p.add(lossKey{rule: "mix", value: "strong", from: 5, to: x.Second - 7, each: 4})
	p.add(lossKey{rule: "mix", value: "free", from: 5, to: x.End, each: 4})
	p.add(lossKey{rule: "mix", value: "vip", from: 5, to: x.End, each: 3})
	p.add(lossKey{rule: "mix", value: "slow", from: 5, to: x.End, each: 5, every: 10})
	p.add(lossKey{rule: "mix", value: "burst", from: x.First - 20, to: x.First - 10, each: 4})
	p.add(lossKey{rule: "mix", value: "waves", from: 5, to: x.Second + 10, each: 3})
	p.add(lossKey{rule: "mix", value: "low", to: x.End, each: 2, every: 10})
	return p
}
