package listed

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/published"
)

// MemberRows returns the rows of a list of instances and aggregators.
func MemberRows(members []Member) Rows {
	return Rows{len(members), "no instance has sent heartbeats lately", func(w io.Writer, _ bool) error { return memberTable(w, members) }, members}
}

// ControlRows returns the rows of a list of controls.
func ControlRows(controls []published.Control) Rows {
	return Rows{len(controls), "no controls are set", func(w io.Writer, _ bool) error { return controlTable(w, controls) }, OfControls(controls)}
}

func memberTable(w io.Writer, r []Member) error {
	now, usual := time.Now(), usualRules(r)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tROLE\tHEARD\tRULES\tCLOCK\tLOST/min\tMEMORY\tHELD\tPROGRAM\tPROBLEM")
	differ := 0
	for i := range r {
		m := &r[i]
		rules := cmp.Or(m.RulesVersion, "unknown")
		if m.RulesVersion != "" && m.RulesVersion != usual {
			rules += " (other)"
			differ++
		}
		clock := "unknown"
		if m.OffsetMillis != nil {
			clock = fmt.Sprintf("%+.0fms", *m.OffsetMillis)
		}
		lost := "unknown"
		if m.Dropped != nil && m.Lost != nil {
			lost = fmt.Sprint(*m.Dropped + *m.Lost)
		}
		memory := "-"
		if m.MemoryMax > 0 {
			memory = fmt.Sprintf("%d of %d MB", m.MemoryUsed>>20, m.MemoryMax>>20)
		}
		held := "-"
		if m.Held > 0 {
			held = fmt.Sprintf("%d for %v", m.Held, max(0, now.Sub(m.HeldSince)).Round(time.Second))
		}
		fmt.Fprintf(t, "%s\t%s\t%.1fs ago\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", termtext.Printable(m.Name), cmp.Or(m.Role, "sender"), max(0, now.Sub(m.Heard).Seconds()),
			termtext.Printable(rules), clock, lost, memory, held, termtext.Printable(cmp.Or(m.Program, "-")), termtext.Printable(cmp.Or(m.Problem, "-")))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if differ > 0 {
		_, err := fmt.Fprintf(w, "%s other rules than the aggregator: give all of them the same file\n", has(differ))
		return err
	}
	return nil
}

func has(n int) string {
	if n == 1 {
		return "1 member has"
	}
	return fmt.Sprintf("%d members have", n)
}

// usualRules returns the version of the rules that most aggregators have. Without aggregators it
// returns the most frequent version.
func usualRules(r []Member) string {
	votes := make(map[string]int)
	for i := range r {
		if v := r[i].RulesVersion; v != "" {
			votes[v]++
			if r[i].Role == string(published.RoleAggregator) {
				votes[v] += len(r)
			}
		}
	}
	best := ""
	for v, n := range votes {
		if n > votes[best] || n == votes[best] && v < best {
			best = v
		}
	}
	return best
}

func controlTable(w io.Writer, r []published.Control) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ACTION\tUNTIL\tBY\tCLAIMS TO BE\tWHY\tRULE\tKEY")
	for i := range r {
		c := &r[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", c.Action, c.Until.Local().Format(time.TimeOnly), termtext.Printable(cmp.Or(c.By, "-")),
			termtext.Printable(cmp.Or(c.Claimed, "-")), termtext.Printable(cmp.Or(c.Why, "-")), termtext.Printable(c.Rule), termtext.Printable(c.Text))
	}
	return t.Flush()
}
