package gateways

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/bench/chart"
)

// [WritePage] replaces the lines between these two.
const (
	beginMark = "<!-- made by \"make bench-gateways\" -->\n"
	endMark   = "<!-- end -->"
)

// WritePage writes the results into a page's file, between its marks.
func WritePage(path string, r *Measurement) error {
	return chart.WriteBetween(path, beginMark, endMark, r.Markdown())
}

// tooBusy is the share of processor time used by other processes above which the page has a warning.
const tooBusy = 0.2

// Markdown returns the results for a page.
func (r *Measurement) Markdown() string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("Measured on %s%s. %d requests a second over %d connections, %g s in each of %d turns; the load sent them",
		r.Machine, r.versions(), r.Rate, r.Connections, r.Slice.Seconds(), r.Turns)
	w("%s late, at the 99th percentile. Other programs took %.0f%% of the processors before it began.", milliseconds(r.late()), 100*r.Busy)
	if r.Busy > tooBusy {
		w("**The machine was too busy: p50 and p99 are noise. Measure again on a quiet machine.**")
	}
	w("")
	w("| | requests | p50 | p99 | processor time | added, p50 and p99 | µs: gateway + service + its stores |")
	w("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
	for i := range r.Gateways {
		r.Gateways[i].writeRows(w)
	}
	w("")
	r.writeComparison(w)
	r.writeCaveats(w)
	return b.String()
}

// versions returns the versions of the gateways that were measured.
func (r *Measurement) versions() string {
	var b strings.Builder
	for _, g := range r.Gateways {
		if g.Version != "" {
			fmt.Fprintf(&b, ", %s %s", g.Name, g.Version)
		}
	}
	return b.String()
}

// late returns how late the load sent its requests.
func (r *Measurement) late() time.Duration {
	all := VariantRow{}
	for _, g := range r.Gateways {
		for _, row := range g.Rows {
			all.Turns = append(all.Turns, row.Turns...)
		}
	}
	return all.median(func(t *Turn) time.Duration { return t.LateP99 })
}

// writeRows writes the rows of a gateway.
func (g *Gateway) writeRows(w func(string, ...any)) {
	if len(g.Rows) == 0 {
		w("| **%s** | not installed | | | | | |", g.Name)
		return
	}
	base := &g.Rows[0]
	cpu := "–"
	if took := base.median(allCPU); took > 0 {
		cpu = microseconds(took) + " µs"
	}
	w("| **%s**, %s | %s | %s | %s | %s | | |", g.Name, base.Name, base.Kind, milliseconds(base.median(p50)), milliseconds(base.median(p99)), cpu)
	for i := range g.Rows[1:] {
		row := &g.Rows[1+i]
		w("| %s | %s | %s | %s | %s | %s, %s | %s |", row.Name, row.Kind,
			row.formatRatio(base, p50), row.formatRatio(base, p99), row.formatRatio(base, allCPU),
			row.formatDifference(base, p50), row.formatDifference(base, p99), row.formatCPUTimes())
	}
}

// formatRatio returns a figure as a multiple of another row's: the median, least and greatest.
func (r *VariantRow) formatRatio(base *VariantRow, fig figure) string {
	s, ok := r.ratioTo(base, fig)
	if !ok {
		return "–"
	}
	return s.String()
}

// String returns "1.20 (1.11–1.34)".
func (s Spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.Median, s.Least, s.Most) }

// formatDifference returns the difference between a figure and that of another row.
func (r *VariantRow) formatDifference(base *VariantRow, fig figure) string {
	d := (r.median(fig) - base.median(fig)).Round(10 * time.Microsecond) // avoids −0.00
	sign := "+"
	if d < 0 {
		sign = "−"
	}
	return sign + milliseconds(d.Abs())
}

// formatCPUTimes returns the processor times of the gateway, of the service that it asks for each
// decision, and of the service's stores.
func (r *VariantRow) formatCPUTimes() string {
	parts := []string{"–"}
	if r.median(gatewayCPU) > 0 {
		parts[0] = microseconds(r.median(gatewayCPU))
	}
	if r.median(serviceCPU) > 0 {
		parts = append(parts, microseconds(r.median(serviceCPU)), microseconds(r.median(storesCPU)))
	}
	return strings.Join(parts, " + ")
}

func microseconds(d time.Duration) string { return fmt.Sprintf("%.0f", float64(d)/1e3) }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }

// writeComparison writes a comparison of Envoy asking hotparam by rls, Envoy's rate limit service,
// with Envoy asking a service that asks Redis for each request. Keys are cold in both.
func (r *Measurement) writeComparison(w func(string, ...any)) {
	for i := range r.Gateways {
		g := &r.Gateways[i]
		ours, theirs := g.row(rlsName, cold), g.row(peerName, cold)
		switch {
		case g.Lacks != "":
			w("%s was not available, so %s is not compared with it.", g.Lacks, g.Name)
		case ours != nil && theirs != nil:
			w("Envoy with %s, compared with Envoy and envoyproxy/ratelimit, which calls Redis for each request,", rlsName)
			w("takes these multiples (◄ where it takes more): p50 %s, p99 %s,", formatComparison(ours, theirs, p50), formatComparison(ours, theirs, p99))
			w("processor time in all %s, of Envoy %s, of the service %s, of its stores %s.", formatComparison(ours, theirs, allCPU),
				formatComparison(ours, theirs, gatewayCPU), formatComparison(ours, theirs, serviceCPU), formatComparison(ours, theirs, storesCPU))
		}
	}
}

func formatComparison(ours, theirs *VariantRow, fig figure) string {
	s, ok := ours.ratioTo(theirs, fig)
	switch {
	case !ok:
		return "–"
	case s.Median > 1:
		return "**" + s.String() + "** ◄"
	}
	return "**" + s.String() + "**"
}

// row returns the row of this name, or nil.
func (g *Gateway) row(name string, k requestKind) *VariantRow {
	for i := range g.Rows {
		if g.Rows[i].Name == name && g.Rows[i].Kind == k {
			return &g.Rows[i]
		}
	}
	return nil
}

// writeCaveats writes the rows with requests that got a wrong answer, or passed before the decision
// came. Their figures are not comparable.
func (r *Measurement) writeCaveats(w func(string, ...any)) {
	var odd []string
	for _, g := range r.Gateways {
		for _, row := range g.Rows {
			if share := row.wrongShare(); share > 0.001 {
				odd = append(odd, fmt.Sprintf("%s, %s, %s: %.1f%%", g.Name, row.Name, row.Kind, 100*share))
			}
		}
	}
	if len(odd) > 0 {
		w("\nRequests with a wrong answer, or that passed without a decision: %s.", strings.Join(odd, "; "))
	}
}
