package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
	"github.com/hotparam/hotparam/internal/statsdsource"
)

func newBenchIngest(s streams) *cobra.Command {
	var vs string
	var rounds int
	var rates, readers []int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ingest",
		Short: "Measure how many StatsD lines the aggregator takes in, from socket to window",
		Long: `Measure how many StatsD lines the aggregator receives over UDP, from the socket to the
window. A separate process sends "shop.hot_param.b=2&q=1:1|c", 100,000 values of q by
Zipf's law, 20 lines a packet: as fast as possible, and 50,000 and 5,000 packets a
second at random times, to one reader and to two (on Linux). CPU is the user and system
time of the receiving process. Lost lines were sent and not counted.

"--rate" and "--readers" set other loads. A rate of 0 means as fast as possible. On Linux
that is measured twice: with single packets, and with up to 32 of one length merged,
which the system splits for receivers that do not accept merged packets.

"--vs minimal" alternates with a minimal reader: one read at a time, parse, a Go map, no
window and no bounds. The ratio compares lines per CPU second.

The JSON object has "loads": of each packets_per_second, readers, merged, lines_per_second,
lines_per_cpu_second and lost, with "--vs minimal" also minimal_lines_per_second,
minimal_lines_per_cpu_second and ratio.`,
		Example: `  hotparam bench ingest
  hotparam bench ingest --vs minimal
  hotparam bench ingest --vs minimal --rate 0 --readers 1,2,4
  hotparam bench ingest --vs minimal --json | jq '.loads[].ratio'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if vs != "" && vs != "minimal" {
				return usageError(fmt.Errorf("--vs %q: want minimal", vs))
			}
			if err := checkRounds(rounds); err != nil {
				return err
			}
			if err := checkLoads(rates, readers); err != nil {
				return err
			}
			return runBench(s, "ingest", asJSON, func(command []string, step func(done, total int)) (bench.IngestResult, error) {
				r, err := bench.Ingest(cmd.Context(), bench.IngestConfig{
					Command: command, Loads: bench.IngestLoads(rates, readers), Rounds: rounds, VsMinimal: vs != "", Progress: step,
				})
				return r, interruptedError(err)
			}, func(r bench.IngestResult) error { return r.WriteText(s.out) })
		},
	}
	cmd.Flags().StringVar(&vs, "vs", "", "also measure another `receiver`: minimal")
	cmd.Flags().IntVar(&rounds, "rounds", 5, "number of measurements of each, of one second")
	cmd.Flags().IntSliceVar(&rates, "rate", nil, "`packets` a second, 0 for as fast as possible (default 0,50000,5000)")
	cmd.Flags().IntSliceVar(&readers, "readers", nil, "`sockets` that share the port (default 1,2)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, and nothing else")
	return cmd
}

// checkLoads checks the rates and the numbers of readers.
func checkLoads(rates, readers []int) error {
	for _, r := range rates {
		if r < 0 || r > 1_000_000 {
			return usageError(fmt.Errorf("--rate %d: want 0 to 1000000 packets a second", r))
		}
	}
	for _, n := range readers {
		if n < 1 || n > statsdsource.MaxReaders {
			return usageError(fmt.Errorf("--readers %d: want 1 to %d", n, statsdsource.MaxReaders))
		}
	}
	return nil
}
