package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/suggest"
)

// capacitySuggestion is the output of `rules suggest --json`.
type capacitySuggestion struct {
	Pools []*suggest.Pool `json:"pools"`
	Rules string          `json:"rules"` // "" if there is nothing to propose
}

func newRulesSuggest(s streams) *cobra.Command {
	var from string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "suggest --from URL",
		Short: "Propose limits for routes by what an aggregator has seen them serve",
		Long: `Propose limits for routes by what an aggregator has seen them serve while their requests
took their usual time. It changes nothing: it prints what was seen, and rules as comments.
Rules with hot: {cost: auto} measure the routes, in shadow mode too. An aggregator
remembers one to two days, and forgets when it restarts.

replay --suggest does the same with an access log that has durations.`,
		Example: `  hotparam rules suggest --from http://127.0.0.1:9125
  hotparam rules suggest --from http://127.0.0.1:9125 --json | jq -r .rules`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return suggestFrom(cmd.Context(), s, from, asJSON) },
	}
	cmd.Flags().StringVar(&from, "from", "", "`URL` of the aggregator's HTTP server (aggregator.http)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object: {pools: [{pool, keys, routes: [{rule, route, usual_seconds, served_per_second, limit, …}]}], rules}")
	return cmd
}

func suggestFrom(ctx context.Context, s streams, from string, asJSON bool) error {
	if from == "" {
		return usageError(errors.New("--from is missing: it has the URL of an aggregator, such as http://127.0.0.1:9125"))
	}
	pools, err := suggest.Pools(ctx, from)
	switch {
	case errors.Is(err, suggest.ErrURL):
		return usageError(fmt.Errorf("--from: %w", err))
	case errors.Is(err, suggest.ErrNoCost):
		return err
	case err != nil:
		return unreachableError(fmt.Errorf("%s: %w", redacted(from), err))
	}
	all := suggest.RoutesOf(pools)
	if len(all) == 0 {
		return errors.New("the aggregator has measured no requests yet: a window takes 10 s.\n" +
			"If this lasts, no instance has requests that match a rule with hot: {cost: auto}, or none of this version runs.")
	}
	proposal := suggest.CapacityRules(all, nil)
	if asJSON {
		err = writeJSON(s.out, capacitySuggestion{pools, proposal})
	} else {
		out := bufio.NewWriter(s.out)
		err = errors.Join(suggest.WritePools(out, printable(redacted(from)), pools, proposal), out.Flush())
	}
	switch {
	case proposal != "":
	case slices.ContainsFunc(all, func(c *suggest.Capacity) bool { return c.IsEnough() }):
		fmt.Fprintln(s.err, "nothing to propose: no rule can name these routes")
	default:
		fmt.Fprintln(s.err, "nothing to propose yet: "+suggest.TooBrief)
	}
	return err
}
