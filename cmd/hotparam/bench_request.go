package main

import (
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/bench"
)

func newBenchRequest(s streams) *cobra.Command {
	var rounds int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "request",
		Short: "Measure the cost of a request, hot or not, and compare it with the least possible cost",
		Long: `Measure the processor time of checking a request with two parameters, one of them with
100,000 values by Zipf's law. The guard and its collector have default settings, and have
seen all requests once.

The floor is the least possible cost of counting a request: two parameters sorted by
a fixed comparison, a hash, a load from an immutable map of all values, one atomic add.
× FLOOR is the median, over the rounds, of a case's time divided by the floor measured
next to it.

The first four cases are the most common: a key that is not hot, and a hot key whose
bucket allows or refuses the request, without and with the response by net/http. Others are
other kinds of refusals, queries that take longer to read, and sources other than the query.
"parse_form" is net/http's reading of the form of case "form", without hotparam.

"On the side" is what the collector does each 100 ms, flushing and sending to a socket,
for each cold request: no request waits for it. The more requests come in 100 ms the
less it is for each, and here they come as fast as one processor can.

The JSON object has floor_ns, flush_ns and cases: of each case its name, what it is, ns,
floors and allocs. cold_ns, cold_allocs, hot_ns and hot_allocs are those of the cases
cold and hot_refused. Allocations are those of the flushes too.`,
		Example: `  hotparam bench request
  hotparam bench request --json | jq '.cold_ns / .floor_ns'
  hotparam bench request --json | jq -r '.cases[] | [.case, .floors, .allocs] | @tsv'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkRounds(rounds); err != nil {
				return err
			}
			return runBench(s, "requests", asJSON, func(_ []string, step func(done, total int)) (bench.RequestResult, error) {
				r, err := bench.Request(cmd.Context(), bench.RequestConfig{Rounds: rounds, Progress: step})
				return r, interruptedError(err)
			}, func(r bench.RequestResult) error { return r.WriteText(s.out) })
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 20, "number of measurements of the first four cases; others have half as many")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, and nothing else")
	return cmd
}
