package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/top"
)

func newTop(s streams) *cobra.Command {
	var f redisFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show hot keys on a live screen, and control them",
		Long: `Show the hot keys of a namespace on a live screen, each with a graph of the last minutes.
Enter shows details of a key: its threshold, bounds and limit, and the routes, instances
and callers of its requests. p, b and a pin, block and allow it for a time, and r ends
that, each after a confirmation. They need a Redis user with the rights of
hotparam-operator. ? lists all keys of the keyboard.`,
		Example: `  hotparam top --namespace shop
  hotparam top --config hotparam.yaml
  hotparam top --redis redis://hotparam-operator@10.0.0.5:6379/0 --namespace shop`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runTop(cmd.Context(), s, f) },
	}
	f.register(cmd.Flags())
	return cmd
}

func runTop(ctx context.Context, s streams, f redisFlags) error {
	place, client, err := f.connect(s.err)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all calls have ended
	if !terminal(s.out) {
		return usageError(errors.New("top needs a terminal: hotparam list and hotparam watch do without"))
	}
	return top.Run(ctx, client, top.Config{
		Namespace: place.namespace, Redis: redacted(place.redis.URL), Claimed: claimedUser(),
		Explain: func(err error) error { return place.explain(err, operatorUser) },
		In:      s.in, Out: s.out,
	})
}
