package exact

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// Ratio is an exact share or multiple.
type Ratio struct{ Num, Den int64 }

// ParseRatio parses "50%" or "1.5x" and panics on anything else.
func ParseRatio(s string) Ratio {
	r, ok := new(big.Rat).SetString(strings.TrimRight(s, "%x"))
	if !ok {
		panic("exact: ratio " + s)
	}
	if strings.HasSuffix(s, "%") {
		r.Quo(r, big.NewRat(100, 1))
	}
	return Ratio{r.Num().Int64(), r.Denom().Int64()}
}

func (r Ratio) rat() *big.Rat { return big.NewRat(r.Num, r.Den) }

// text formats the ratio times scale as a decimal number.
func (r Ratio) text(scale int64) string {
	product := new(big.Rat).Mul(r.rat(), big.NewRat(scale, 1))
	return strings.TrimSuffix(strings.TrimRight(product.FloatString(9), "0"), ".")
}

// ThresholdSpec defines when a key is hot: at N counts within D and, depending on its kind, at
// Factor times its group's count, at Factor times its own baseline, or among the Top highest. It
// cools below Exit times that count, once Hold has passed and it has been below for CoolDown.
type ThresholdSpec struct {
	Kind              string // "rate", "share", "jump" or "top"
	N                 int64
	D, Hold, CoolDown time.Duration
	Factor            Ratio // factor of a share or a jump
	Top               int
	Exit              Ratio
}

// NewThreshold returns a rate with the documented defaults: exit at 80%, hold of 10 s, cool-down
// of 5 s.
func NewThreshold(n int64, d time.Duration) ThresholdSpec {
	return ThresholdSpec{Kind: "rate", N: n, D: d, Exit: Ratio{4, 5}, Hold: 10 * time.Second, CoolDown: 5 * time.Second}
}

// PaneWindow is a window as it is counted: so many panes of so many nanoseconds.
type PaneWindow struct{ Width, Panes int64 }

// NewWindow returns the window of a duration. A pane is a sixtieth but at least 100 ms, and the window
// has as many whole panes as fit.
func NewWindow(d time.Duration) PaneWindow {
	width := max(int64(100*time.Millisecond), int64(d)/60)
	return PaneWindow{width, int64(d) / width}
}

// Span returns the instants of the window that ends with a pane.
func (w PaneWindow) Span(last int64) (from, to int64) {
	return (last - w.Panes + 1) * w.Width, (last + 1) * w.Width
}

// atPaneEnds reports whether the threshold compares keys with each other, which it does at the
// end of each pane.
func (t ThresholdSpec) atPaneEnds() bool { return t.Kind == "share" || t.Kind == "top" }

// Name returns the threshold's name in events.
func (t ThresholdSpec) Name() string {
	per := t.D.String()
	switch {
	case t.D == time.Second:
		per = "s"
	case t.D%time.Hour == 0:
		per = strings.TrimSuffix(per, "0m0s")
	case t.D%time.Minute == 0:
		per = strings.TrimSuffix(per, "0s")
	}
	switch t.Kind {
	case "share":
		return t.Factor.text(100) + "%/" + per
	case "jump":
		return t.Factor.text(1) + "x/" + per
	case "top":
		return fmt.Sprintf("top %d/%s", t.Top, per)
	}
	return fmt.Sprintf("%d/%s", t.N, per)
}

// yaml formats the threshold for a rules file.
func (t ThresholdSpec) yaml() string {
	least := fmt.Sprintf("min: %d/%v", t.N, t.D)
	var terms string
	switch t.Kind {
	case "share":
		terms = "share: " + t.Factor.text(100) + "%, " + least
	case "jump":
		terms = "jump: " + t.Factor.text(1) + "x, " + least
	case "top":
		terms = fmt.Sprintf("top: %d, %s", t.Top, least)
	default:
		terms = fmt.Sprintf("rate: %d/%v", t.N, t.D)
	}
	return fmt.Sprintf("{%s, exit: %s%%, hold: %v, cool_down: %v}", terms, t.Exit.text(100), t.Hold, t.CoolDown)
}

// ExceptionSpec sets other terms for the keys whose parameter Name has a value that matches
// Pattern. A star in the pattern matches any text.
type ExceptionSpec struct {
	Name, Pattern string
	// Action is "allow" or "block" if such keys are not counted, otherwise "".
	Action string
	// N replaces the count of rates over D. Zero keeps the rule's count.
	N int64
	D time.Duration
}

// matches reports whether a value matches the pattern.
func (x *ExceptionSpec) matches(value string) bool {
	parts := strings.Split(x.Pattern, "*")
	if len(parts) == 1 {
		return value == x.Pattern
	}
	for i, part := range parts {
		index := strings.Index(value, part)
		switch {
		case i == len(parts)-1:
			return strings.HasSuffix(value, part)
		case index < 0 || i == 0 && index > 0:
			return false
		}
		value = value[index+len(part):]
	}
	return true
}

// RuleSpec says which keys a request counts and when they are hot.
type RuleSpec struct {
	By     string // the parameter by of Keys
	Count  string // the unit; empty means requests
	Hot    []ThresholdSpec
	Except []ExceptionSpec // the first match applies
}

// YAML formats the rule as an item of a rules file's list, matching all requests.
func (r RuleSpec) YAML(id string) string {
	keyBy := r.By
	if keyBy != "all" && keyBy != "each" {
		keyBy = "[" + keyBy + "]"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  - id: %s\n    match: {route: '*'}\n    by: %s\n", id, keyBy)
	if r.Count != "" {
		fmt.Fprintf(&b, "    count: %s\n", r.Count)
	}
	b.WriteString("    hot:\n")
	for _, t := range r.Hot {
		fmt.Fprintf(&b, "      - %s\n", t.yaml())
	}
	for i, x := range r.Except {
		if i == 0 {
			b.WriteString("    except:\n")
		}
		terms := "action: " + x.Action
		if x.Action == "" {
			terms = fmt.Sprintf("hot: %d/%v", x.N, x.D)
		}
		fmt.Fprintf(&b, "      - {values: {%q: %q}, %s}\n", x.Name, x.Pattern, terms)
	}
	return b.String()
}

// exception returns the first exception that matches a key's text, or nil.
func (r RuleSpec) exception(text string) *ExceptionSpec {
	_, query, _ := strings.Cut(text, "?")
	for i := range r.Except {
		x := &r.Except[i]
		for part := range strings.SplitSeq(query, "&") {
			if name, value, _ := strings.Cut(part, "="); decode(name) == x.Name && x.matches(decode(value)) {
				return x
			}
		}
	}
	return nil
}

// under returns the threshold as it applies to a key under the exception x, which may be nil.
func (t ThresholdSpec) under(x *ExceptionSpec) ThresholdSpec {
	if x != nil && x.N > 0 && t.Kind == "rate" && x.D == t.D {
		t.N = x.N
	}
	return t
}
