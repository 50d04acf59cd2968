package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/hotparam/hotparam/internal/bench"
	"github.com/spf13/cobra"
)

func newBenchIngest(s streams) *cobra.Command {
	var vs string
	var rounds int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ingest",
		Short: "Measure how many StatsD lines the aggregator takes in, from socket to window",
		Long: `Measure how many StatsD lines the aggregator takes in over UDP, from the socket to
the window. A process of its own sends "shop.hot_param.b=2&q=1:1|c", 100,000 values
of q by Zipf's law, 20 lines a packet, as fast as it can; CPU is the user and system
time of the process that receives; lost is what was sent and not counted.

"--vs minimal" measures in turns a reader that does the least: one read at a time,
parse, a Go map, no window and no bounds. The ratio is that of the lines per CPU
second.

The JSON object has lines_per_second, lines_per_cpu_second and lost, with "--vs
minimal" also minimal_lines_per_second, minimal_lines_per_cpu_second and ratio.`,
		Example: `  hotparam bench ingest
  hotparam bench ingest --vs minimal
  hotparam bench ingest --vs minimal --json | jq .ratio`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if vs != "" && vs != "minimal" {
				return usageError(fmt.Errorf("--vs %q: want minimal", vs))
			}
			if err := checkRounds(rounds); err != nil {
				return err
			}
			command, err := partCommand()
			if err != nil {
				return err
			}
			step, end := newBar(s, "ingest")
			r, err := bench.Ingest(cmd.Context(), bench.IngestConfig{Command: command, Rounds: rounds, VsMinimal: vs != "", Progress: intStep(step)})
			end()
			switch {
			case err != nil:
				return interruptedError(err)
			case asJSON:
				return newJSON(s.out).Encode(r)
			}
			return ingestText(s, r)
		},
	}
	cmd.Flags().StringVar(&vs, "vs", "", "measure another `receiver` beside it: minimal")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "how often each is measured, for two seconds")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, and nothing else")
	return cmd
}

func ingestText(s streams, r bench.IngestResult) error {
	fmt.Fprint(s.out, "StatsD lines over UDP on loopback, 20 a packet, as fast as one process sends\n\n")
	most := r.LinesPerCPUSecond
	if r.Minimal != nil {
		most = max(most, r.Minimal.LinesPerCPUSecond)
	}
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\tLINES/S\tLINES/CPU S\t")
	fmt.Fprintf(t, "aggregator\t%s\t%s\t%s\n", metric(r.LinesPerSecond), metric(r.LinesPerCPUSecond), gauge(r.LinesPerCPUSecond, most))
	if m := r.Minimal; m != nil {
		fmt.Fprintf(t, "minimal reader\t%s\t%s\t%s\n", metric(m.LinesPerSecond), metric(m.LinesPerCPUSecond), gauge(m.LinesPerCPUSecond, most))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(s.out)
	if r.Minimal != nil {
		fmt.Fprintf(s.out, "%.2f × the lines per CPU second of the minimal reader\n", r.Minimal.Ratio)
	}
	if r.Lost == 0 {
		_, err := fmt.Fprintf(s.out, "nothing was lost of %s lines: it was not saturated\n", thousands(r.Sent))
		return err
	}
	_, err := fmt.Fprintf(s.out, "lost %s of %s lines (%.1f%%): it was saturated, and the socket dropped the rest\n",
		thousands(r.Lost), thousands(r.Sent), 100*float64(r.Lost)/float64(r.Sent))
	return err
}
