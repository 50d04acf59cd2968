package suggest

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
)

// capacityRows is the number of routes in the table of what was seen.
const capacityRows = 20

// capacityTable writes what routes were seen to serve.
func capacityTable(w io.Writer, all []*Capacity) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprint(w, "\nWhat routes served, in windows of ten seconds. A window is slow if its requests took over 1.5 times\nthe usual time on average.\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	live := all[0].Pool != "" // from an aggregator
	fmt.Fprint(t, "ROUTE\t")
	if live {
		fmt.Fprint(t, "RULE\tNOW\t")
	}
	fmt.Fprintln(t, "USUAL TIME\tMOST WHILE NOT SLOW\tLEAST WHILE SLOW\tWINDOWS\tSLOW")
	for _, c := range all[:min(len(all), capacityRows)] {
		slow := "-"
		if c.Slow > 0 {
			slow = PerSecond(c.SlowFrom)
		}
		fmt.Fprintf(t, "%s\t", termtext.Printable(c.Route))
		if live {
			fmt.Fprintf(t, "%s\t%s\t", termtext.Printable(c.Rule), PerSecond(c.Now))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\n", Each(c.Usual), PerSecond(c.Served), slow, c.Windows, c.Slow)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if more := len(all) - capacityRows; more > 0 {
		fmt.Fprintf(w, "… and %d more with fewer requests; --json lists all\n", more)
	}
	return nil
}

// capacityProposal returns rules as comments that can be made rules by hand. They continue those of
// a file, unless there are none.
func capacityProposal(rules string, continues bool) string {
	if rules == "" {
		return ""
	}
	if continues {
		rules = strings.TrimPrefix(rules, "rules:\n")
	}
	return `#
# The following rules are comments, as their limits only say that more was not seen. A route may well
# serve more. To use a rule, remove the first two characters of its lines. A limit refuses nothing
# while on_limit is shadow. Bursts of less than ten seconds may exceed it.
#
` + commented(rules)
}

// commented returns text as lines of a comment.
func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.TrimRight("# "+line, " \n") + "\n")
	}
	return b.String()
}

// WritePools writes what was seen at an aggregator as comments, and the rules, too.
func WritePools(w io.Writer, from string, pools []*Pool, proposal string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "What hotparam rules suggest finds at %s\n", from)
	for _, p := range pools {
		fmt.Fprintf(&b, "\nPool %s: %s on trial, %d held, %d suspected.\n", termtext.Printable(p.Name),
			hotwords.Plural(p.Keys[string(published.HoldTrial)], "key"), p.Keys[string(published.HoldKept)], p.Keys[string(published.HoldSuspected)])
		if err := capacityTable(&b, p.Routes); err != nil {
			return err
		}
	}
	if brief := slices.DeleteFunc(RoutesOf(pools), func(c *Capacity) bool { return c.IsEnough() }); len(brief) > 0 && proposal != "" {
		fmt.Fprintf(&b, "\nNothing is proposed for %s: %s.\n", hotwords.Plural(len(brief), "route"), TooBrief)
	}
	_, err := io.WriteString(w, commented(b.String())+capacityProposal(proposal, false))
	return err
}

// RoutesOf returns the routes of all pools.
func RoutesOf(pools []*Pool) (all []*Capacity) {
	for _, p := range pools {
		all = append(all, p.Routes...)
	}
	return all
}
