package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/yardstick"
)

// WriteText writes the result as text.
func (r *EnforceResult) WriteText(w io.Writer, c *EnforceConfig) error {
	pace, spread := "urgent flushes", "evenly"
	if c.Slow {
		pace = "no urgent flushes"
	}
	if c.Zipf {
		spread = "by Zipf's law"
	}
	fmt.Fprintf(w, "Time to enforce: %d instances, hot at %d/s, %d bursts of %d requests in %v, %s over the instances, %s\n\n",
		c.Instances, 10*c.Instances, r.N, 20*c.Instances, c.Over, spread, pace)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "from the request that reached the threshold to\tP50\tP99\tMAX")
	for _, row := range []struct {
		to    string
		times []time.Duration
	}{{"the first request refused on any instance", r.First}, {"the limit in force on the last instance", r.Last}} {
		ms := func(p float64) string {
			return fmt.Sprintf("%.1f ms", float64(yardstick.Percentile(row.times, p).Microseconds())/1000)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", row.to, ms(50), ms(99), ms(100))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if r.Missed > 0 {
		fmt.Fprintf(w, "%d bursts were not limited on every instance within %v\n", r.Missed, EnforceLimit)
	}
	fmt.Fprintln(w, "\nto the limit in force on the last instance:")
	return writeHistogram(w, Histogram(r.Last, 20))
}

func writeHistogram(w io.Writer, buckets []Bucket) error {
	highest := 0
	for _, b := range buckets {
		highest = max(highest, b.N)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, b := range buckets {
		count := ""
		if b.N > 0 {
			count = fmt.Sprint(b.N)
		}
		fmt.Fprintf(t, "  from %v\t%s\t%s\n", b.From, count, gauge(float64(b.N), float64(highest)))
	}
	return t.Flush()
}

// WriteText writes the result as text.
func (r *IngestResult) WriteText(w io.Writer) error {
	fmt.Fprint(w, "StatsD lines over UDP on loopback, 20 a packet\n\n")
	highest := 0.0
	for _, l := range r.Loads {
		if highest = max(highest, l.LinesPerCPUSecond); l.Minimal != nil {
			highest = max(highest, l.Minimal.LinesPerCPUSecond)
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PACKETS/S\tREADERS\t\tLINES/S\tLINES/CPU S\tRATIO\tLOST\t")
	for _, l := range r.Loads {
		rate, ratio := "flood", ""
		if l.Rate > 0 {
			rate = hotwords.Thousands(int64(l.Rate))
		}
		if l.Merged {
			rate += ", merged"
		}
		if l.Minimal != nil {
			ratio = fmt.Sprintf("%.2f ×", l.Ratio)
		}
		fmt.Fprintf(t, "%s\t%d\taggregator\t%s\t%s\t%s\t%.1f%%\t%s\n", rate, l.Readers, metric(l.LinesPerSecond), metric(l.LinesPerCPUSecond),
			ratio, 100*float64(l.Lost)/float64(max(1, l.Sent)), gauge(l.LinesPerCPUSecond, highest))
		if m := l.Minimal; m != nil {
			fmt.Fprintf(t, "\t\tminimal\t%s\t%s\t\t\t%s\n", metric(m.LinesPerSecond), metric(m.LinesPerCPUSecond), gauge(m.LinesPerCPUSecond, highest))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "\nA flood saturates the reader, and the socket drops the rest.\n")
	return err
}

// WriteText writes the result as text.
func (r *RequestResult) WriteText(w io.Writer) error {
	fmt.Fprint(w, "Cost of a request: two parameters, 100,000 values by Zipf's law, one processor\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	highest := r.FloorNS
	for _, c := range r.Cases {
		highest = max(highest, c.NS)
	}
	fmt.Fprintln(t, "\tNS\t× FLOOR\tALLOCS\t")
	fmt.Fprintf(t, "floor: sort, hash, map, add\t%.1f\t1.00\t\t%s\n", r.FloorNS, gauge(r.FloorNS, highest))
	for _, c := range r.Cases {
		fmt.Fprintf(t, "%s\t%.1f\t%.2f\t%g\t%s\n", c.What, c.NS, c.Floors, c.Allocs, gauge(c.NS, highest))
	}
	fmt.Fprintf(t, "on the side: flush, send\t%.1f\t%.2f\t\t%s\n", r.FlushNS, r.FlushNS/r.FloorNS, gauge(r.FlushNS, highest))
	return t.Flush()
}

// WriteText writes the result as text.
func (r *PipelineResult) WriteText(w io.Writer, c *PipelineConfig) error {
	over := "StatsD lines over UDP"
	if c.Transport == TransportKafka {
		over = "Kafka, embedded"
		if len(c.Brokers) > 0 {
			over = "Kafka at " + strings.Join(c.Brokers, ",")
		}
	}
	fmt.Fprintf(w, "The whole chain over %s: %d instances, Zipf 1.1 over 100,000 keys\n\n", over, c.Instances)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "events\t%s in %.1f s, %s/s\n", hotwords.Thousands(r.Events), r.Seconds, hotwords.Thousands(int64(r.EventsPerSecond)))
	fmt.Fprintf(t, "processor time\t%.2f s: %.2f s in the instances, %.2f s in the aggregator\n", r.CPUSeconds, r.Instances, r.Aggregator)
	fmt.Fprintf(t, "lag\t%.1f ms from a count to its window (p99 of %d)\n", r.LagMS, r.Probes)
	fmt.Fprintf(t, "hot\t%d keys in Redis\n", r.Hot)
	switch {
	case r.Lost > 0:
		fmt.Fprintf(t, "lost\t%s (%.3f%%)\n", hotwords.Thousands(r.Lost), 100*float64(r.Lost)/float64(r.Events))
	case r.Lost < 0:
		fmt.Fprintf(t, "lost\tnothing; %s were counted twice\n", hotwords.Thousands(-r.Lost))
	default:
		fmt.Fprintln(t, "lost\tnothing")
	}
	return t.Flush()
}

// WriteText writes the result as text.
func (r *DetectResult) WriteText(w io.Writer) error {
	share := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.4f", *v)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "precision\t%s\t%d of %d hot keys are not truly hot\n", share(r.Precision), r.FalseHot, r.Hot)
	fmt.Fprintf(t, "recall\t%s\t%d missed above threshold + floor\n", share(r.Recall), r.MissedAboveFloor)
	floor := "the largest count that could be hidden of a key"
	if r.Floor >= r.Threshold {
		floor += ": not below the threshold, so the recall proves nothing; give more --memory, or a higher --threshold"
	}
	fmt.Fprintf(t, "floor\t%s\t%s\n", hotwords.Thousands(r.Floor), floor)
	fmt.Fprintf(t, "bounds\t%s\t%d of them wrong\n", hotwords.Thousands(int64(r.Bounds)), r.WrongBounds)
	fmt.Fprintf(t, "cooled\t%s\t%d too early, %d keys too late\n", hotwords.Thousands(int64(r.Cooled)), r.CooledEarly, r.CooledLate)
	fmt.Fprintf(t, "events/s\t%s\tof processor time, from line to window\n", metric(r.EventsPerSecond))
	fmt.Fprintf(t, "memory\t%.1f MB\tof decoder and detector\n", float64(r.MemoryBytes)/1e6)
	if err := t.Flush(); err != nil {
		return err
	}
	return writeNear(w, r.Near)
}

// writeNear writes a histogram of the keys that are truly hot.
func writeNear(w io.Writer, near []Near) error {
	highest := 0
	for _, n := range near {
		highest = max(highest, n.True)
	}
	if highest == 0 {
		_, err := fmt.Fprintln(w, "\nno key is truly hot")
		return err
	}
	fmt.Fprintln(w, "\nkeys that are truly hot, by their peak in multiples of the threshold:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, n := range near {
		to := fmt.Sprintf("to %g", n.To)
		if math.IsInf(n.To, 1) {
			to = "and more"
		}
		missed := ""
		if n.Hot < n.True {
			missed = fmt.Sprintf("%d missed", n.True-n.Hot)
		}
		fmt.Fprintf(t, "  %g %s\t%d\t%s\t%s\n", n.From, to, n.True, gauge(float64(n.True), float64(highest)), missed)
	}
	return t.Flush()
}

const gaugeWidth = 40

// gauge draws value as a bar in eighths of a character. full is the value of the whole width.
func gauge(value, full float64) string {
	if full <= 0 || value <= 0 {
		return ""
	}
	eighths := max(1, int(value/full*gaugeWidth*8+0.5))
	text := strings.Repeat("█", eighths/8)
	if part := eighths % 8; part > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[part-1])
	}
	return text
}

// metric writes 12345678 as 12.3 M.
func metric(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.2f M", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%.0f k", v/1e3)
	}
	return fmt.Sprintf("%.0f", v)
}
