package listed

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Rows are the entries of a list, printed as a table or as JSON values.
type Rows struct {
	Len    int
	None   string // the text for an empty list
	Table  func(w io.Writer, wide bool) error
	Values any // a slice, never nil
}

// HotRows returns the rows of a list of hot keys.
func HotRows(hot []published.Hot, fleet *admitted.Admissions) Rows {
	return Rows{len(hot), "nothing is hot", func(w io.Writer, wide bool) error { return hotTable(w, hot, fleet, wide) }, OfHot(hot, fleet)}
}

// SuspectRows returns the rows of a list of suspects.
func SuspectRows(suspects []published.Hot) Rows {
	return Rows{len(suspects), "nothing is suspect", func(w io.Writer, _ bool) error { return suspectTable(w, suspects) }, OfSuspects(suspects)}
}

// NearRows returns the rows of a list of the keys nearest to being hot, and of the traffic of each rule.
func NearRows(s published.Summary) Rows {
	return Rows{len(s.Near) + len(s.Traffic), "no traffic is counted", func(w io.Writer, _ bool) error { return nearTable(w, s) }, OfNear(s.Near)}
}

func nearTable(w io.Writer, s published.Summary) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NEAR\tRATE\tCOUNT\tHOT AT\tRULE\tKEY")
	for i := range s.Near {
		h := &s.Near[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", hotwords.Near(h), hotwords.Speed(h.Rate, h.Cause.Unit), hotwords.Bounds(h), hotwords.Cause(h.Cause), termtext.Printable(h.Rule), termtext.Printable(h.Text))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nTRAFFIC\tKEYS\tRULE\tROUTE")
	for _, of := range s.Traffic {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", hotwords.Speed(of.Rate, of.Unit), hotwords.Thousands(of.Keys), termtext.Printable(of.Rule), termtext.Printable(of.Route))
	}
	return t.Flush()
}

func hotTable(w io.Writer, r []published.Hot, fleet *admitted.Admissions, wide bool) error {
	// tabwriter would end a column at a line without tabs, so the lines below a key are added
	// afterwards.
	var heads strings.Builder
	t := tabwriter.NewWriter(&heads, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RATE\tCOUNT\tHOT AT\tLIMIT\tADMITTED\tREFUSED\tMODE\tSINCE\tRULE\tKEY")
	for i := range r {
		h := &r[i]
		limit := "-"
		if !h.Limit.IsZero() {
			limit = hotwords.Rate(h.Limit, h.Cause.Unit)
		}
		rate := hotwords.Speed(h.Rate, h.Cause.Unit)
		if h.Estimated {
			rate += " estimated"
		}
		mode := string(h.Mode)
		switch {
		case h.Hold != nil:
			mode = hotwords.HoldState(h.Hold)
		case h.Spared:
			mode = "usual, spared"
		case h.Usual:
			mode += ", usual"
		}
		gauge := fleet.Gauge(h)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", rate, hotwords.Bounds(h), hotwords.Cause(h.Cause), limit, admittedCell(gauge, h.Cause.Unit), hotwords.Refused(gauge), mode, h.Since.Local().Format(time.TimeOnly), termtext.Printable(h.Rule), termtext.Printable(h.Text))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSuffix(heads.String(), "\n"), "\n") {
		if i > 0 && r[i-1].Hold != nil {
			line += "\n    " + termtext.Printable(hotwords.Hold(r[i-1].Hold))
		}
		if wide && i > 0 {
			line += below(&r[i-1])
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// admittedCell has what the limit admits and, if the rule has on_hot, what needs no admission.
func admittedCell(g admitted.Gauge, unit rules.Unit) string {
	words := hotwords.Admitted(g, unit)
	if shared := hotwords.OnHot(g.OnHot); shared != "" {
		words += " · " + shared
	}
	return words
}

// below returns the origins of a key's requests, in lines that follow the key's own.
func below(h *published.Hot) string {
	var b strings.Builder
	if words := hotwords.Outcomes(h); words != "" {
		fmt.Fprintf(&b, "\n    %-16s  %s", "since hot", words)
	}
	top := h.Top
	if top == nil {
		return b.String()
	}
	window, sampled := hotwords.OriginSpans(h)
	for _, kind := range []struct {
		name    string
		in      time.Duration
		origins []published.Origin
	}{{"routes", sampled, top.Routes}, {"instances", window, top.Instances}, {"callers", sampled, top.Callers}} {
		for i, o := range kind.origins {
			name := ""
			switch {
			case i == 0 && kind.in > 0:
				name = kind.name + " in " + hotwords.Span(kind.in)
			case i == 0:
				name = kind.name
			}
			fmt.Fprintf(&b, "\n    %-16s  %11s  %s", name, hotwords.OriginCount(o), termtext.Printable(o.Name))
		}
	}
	if top.Explains > 0 {
		fmt.Fprintf(&b, "\n    %-16s  %11d  more specific keys, hot for no other reason", "explains", top.Explains)
	}
	return b.String()
}

func suspectTable(w io.Writer, r []published.Hot) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RATE\tRULE\tKEY")
	for _, h := range r {
		fmt.Fprintf(t, "%.1f/s\t%s\t%s\n", h.Rate, termtext.Printable(h.Rule), termtext.Printable(h.Text))
	}
	return t.Flush()
}
