package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/hotparam/hotparam/internal/bench"
	"github.com/spf13/cobra"
)

func newBenchRequest(s streams) *cobra.Command {
	var rounds int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "request",
		Short: "Measure what a request pays, hot or not, beside the least that counting it can cost",
		Long: `Measure what the check of a request takes of one processor's time: two parameters,
one of them with 100,000 values by Zipf's law. The guard and its collector are as they
are by default, and have seen all requests once.

  floor  the least that counting it can cost: its two parameters sorted by hand, a
         hash, a load from a map of all values that never changes, one
         atomic add
  cold   the whole check where the key is not hot: the rules of its route, its key,
         the count, the look-up in the hot set
  hot    the whole check where the key is hot, and its bucket decides
  flush  what the collector does on the side, each 100 ms, flushing and sending to a
         socket, for each cold request: no request waits for it. The more requests
         come in 100 ms the less it is for each, and here they come as fast as one
         processor can.

The JSON object has floor_ns, cold_ns, cold_allocs, hot_ns, hot_allocs and flush_ns;
allocations are those of the flushes too.`,
		Example: `  hotparam bench request
  hotparam bench request --json | jq '.cold_ns / .floor_ns'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRounds(rounds); err != nil {
				return err
			}
			step, end := newBar(s, "requests")
			r, err := bench.Request(cmd.Context(), bench.RequestConfig{Rounds: rounds, Progress: intStep(step)})
			end()
			switch {
			case err != nil:
				return interruptedError(err)
			case asJSON:
				return newJSON(s.out).Encode(r)
			}
			return requestText(s, r)
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 12, "how often each is measured")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, and nothing else")
	return cmd
}

func requestText(s streams, r bench.RequestResult) error {
	fmt.Fprint(s.out, "What a request pays: two parameters, 100,000 values by Zipf's law, one processor\n\n")
	t := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	most := max(r.FloorNS, r.ColdNS, r.HotNS)
	fmt.Fprintln(t, "\tNS\t× FLOOR\tALLOCS\t")
	fmt.Fprintf(t, "floor: sort, hash, map, add\t%.1f\t1.00\t\t%s\n", r.FloorNS, gauge(r.FloorNS, most))
	fmt.Fprintf(t, "cold: not hot\t%.1f\t%.2f\t%g\t%s\n", r.ColdNS, r.ColdNS/r.FloorNS, r.ColdAllocs, gauge(r.ColdNS, most))
	fmt.Fprintf(t, "hot: over its limit\t%.1f\t%.2f\t%g\t%s\n", r.HotNS, r.HotNS/r.FloorNS, r.HotAllocs, gauge(r.HotNS, most))
	fmt.Fprintf(t, "on the side: flush, send\t%.1f\t%.2f\t\t%s\n", r.FlushNS, r.FlushNS/r.FloorNS, gauge(r.FlushNS, most))
	return t.Flush()
}
