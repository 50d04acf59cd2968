package suggest

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// unproposedRows is the number of rows from which parameters without a proposal are left out of
// the table.
const unproposedRows = 40

// WriteText writes a rules file for some keys a day of a log, with the reasons in comments.
func (r *Proposal) WriteText(w io.Writer, perDay float64, log string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "Rules that hotparam replay --suggest %v/day proposes for %s\n", perDay, log)
	fmt.Fprintf(&b, "%s requests from %s to %s UTC.\n", hotwords.Thousands(r.Requests), r.First.Format(time.DateTime), r.Last.Format(time.DateTime))
	if r.Rules != "" {
		b.WriteString(cautionWords(r) + "\n" + measuredWords(r, perDay))
	}
	b.WriteString("\n")
	if err := suggestionTable(&b, r); err != nil {
		return err
	}
	if err := capacityTable(&b, r.Capacities); err != nil {
		return err
	}
	if r.Secret > 0 {
		fmt.Fprintf(&b, "\n%s that look secret were left out.\n", hotwords.Plural(r.Secret, "parameter"))
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(&b, "\n%s requests were left out: there are too many different paths, or the paths belong to no route.\n", hotwords.Thousands(r.LeftOut))
	}
	if r.Full {
		b.WriteString("\nThere are more values than can be distinguished: the shares are those of the first million.\n")
	}
	if r.Rules != "" {
		b.WriteString("\nThe limits refuse nothing while on_limit is shadow. Each is what an instance lets pass of a hot value.\n")
	}
	_, err := io.WriteString(w, commented(b.String())+r.Rules+capacityProposal(r.CapacityRules, r.Rules != ""))
	return err
}

// cautionWords warns of the limits that would have refused many requests, or returns "".
func cautionWords(r *Proposal) string {
	var b strings.Builder
	for _, p := range r.Params {
		if p.RefusesMuch() {
			fmt.Fprintf(&b, "CAUTION: the limit on %s of %s %s.\n", termtext.Printable(p.Name), termtext.Printable(p.Route), p.RefusedWords())
		}
	}
	if b.Len() > 0 {
		b.WriteString("If that is the traffic of an ordinary day, raise hot and limit, or except its values, before you use it.\n")
		return "\n" + b.String()
	}
	return ""
}

// measuredWords describes the keys that the rules would have made hot.
func measuredWords(r *Proposal, perDay float64) string {
	var b strings.Builder
	span := r.Last.Sub(r.First)
	fmt.Fprintf(&b, "Replayed with these rules, the log makes %s hot", hotwords.Plural(r.Hot, "key"))
	switch {
	case span < 24*time.Hour:
		fmt.Fprintf(&b, " in %s.\nThe log has less than a day and counts as one. A whole day has more hot keys if its other hours\nbring other values. Give a log of a day or more.\n", hotwords.Seconds(span.Seconds()))
	default:
		fmt.Fprintf(&b, " in %.1f days. With each key counted once a day, that is %.1f a day", r.Days, float64(r.Hot)/r.Days)
		if len(r.PerDay) > 1 {
			fmt.Fprintf(&b, ", from %d to %d", slices.Min(r.PerDay), slices.Max(r.PerDay))
		}
		b.WriteString(".\n")
	}
	if r.Refused > 0 {
		fmt.Fprintf(&b, "Together their limits would have refused %s requests (%s).\n", hotwords.Thousands(r.Refused), Percent(float64(r.Refused)/float64(r.Requests)))
	} else {
		b.WriteString("Their limits would have refused nothing.\n")
	}
	switch want := perDay * r.Days; {
	case float64(r.Most) < 0.8*want:
		fmt.Fprintf(&b, "No more are possible: with the lowest thresholds that still mean something, %d become hot.\n", r.Most)
	case float64(r.Hot) < 0.7*want || float64(r.Hot) > 1.4*want:
		b.WriteString("No threshold comes closer, because several values reach it together.\n")
	}
	return b.String()
}

func suggestionTable(w io.Writer, r *Proposal) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ROUTE\tPARAMETER\tREQUESTS\tVALUES\tTOP\tTOP 10\tPEAK OF ONE\tHOT\tKEYS\tMOST FREQUENT, OR WHY NOT")
	rows := slices.Clone(r.Params)
	slices.SortStableFunc(rows, func(a, b *Param) int { return cmp.Compare(unproposed(a), unproposed(b)) })
	few, more := 0, 0
	for i, p := range rows {
		switch {
		case p.Threshold != "":
		case p.Requests < LeastRequests:
			few++
			continue
		case i >= unproposedRows:
			more++
			continue
		}
		hot, keys, words := cmp.Or(p.Threshold, "-"), "-", termtext.Printable(p.Why)
		if p.Threshold != "" {
			keys, words = strconv.Itoa(p.Hot), cmp.Or(termtext.Printable(p.TopValue), "(not shown)")
			if p.Jump != "" {
				hot = p.Jump + ", min " + hot
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", termtext.Printable(p.Route), termtext.Printable(p.Name), hotwords.Thousands(p.Requests), hotwords.Thousands(int64(p.Values)),
			tenths(p.Top), tenths(p.Top10), fmt.Sprintf("%d/%s", p.Peak, windowWord(p.Window)), hot, keys, words)
	}
	if few < len(rows) {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if more > 0 {
		fmt.Fprintf(w, "… and %d more without a proposal; --json lists all\n", more)
	}
	if few > 0 {
		fmt.Fprintf(w, "%s of fewer than %d requests each are not judged; --json has them.\n", hotwords.Plural(few, "parameter"), LeastRequests)
	}
	return nil
}

// unproposed returns 1 if nothing is proposed for p, which sorts last, and 0 otherwise.
func unproposed(p *Param) int {
	if p.Threshold == "" {
		return 1
	}
	return 0
}

// tenths formats a share in percent, rounded down.
func tenths(share float64) string { return fmt.Sprintf("%.1f%%", math.Floor(1000*share)/10) }

func windowWord(seconds float64) string {
	switch {
	case seconds < 2:
		return "s"
	case seconds < 60:
		return fmt.Sprintf("%.0fs", seconds)
	}
	return fmt.Sprintf("%.0fm", seconds/60)
}

// Nothing describes why no rules are proposed.
func (r *Proposal) Nothing() string {
	if len(r.Params) == 0 {
		return "nothing to propose: no request has parameters, and no path has values"
	}
	few := true
	for _, p := range r.Params {
		few = few && p.Why == "too few requests"
	}
	if few {
		return fmt.Sprintf("nothing to propose: the log is too short: no parameter is in 100 of its %d requests", r.Requests)
	}
	return "nothing to propose: no parameter's requests gather on some of its values; the table says why for each"
}
