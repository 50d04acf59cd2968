package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/internal/top"
)

func newTop(s streams) *cobra.Command {
	var f redisFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what is hot on a live screen, and act on it",
		Long: `Show the hot keys of a namespace on a live screen, each with its line over the last
minutes. Enter shows all that is known of a key: its threshold, bounds and limit, and the
routes, instances and callers of its requests. p, b and a pin, block and allow it for some
time, and r ends that, after a confirmation; the user of Redis needs the rights of
hotparam-operator for it. ? lists all keys.`,
		Example: `  hotparam top --namespace shop
  hotparam top --config hotparam.yaml
  hotparam top --redis redis://hotparam-operator@10.0.0.5:6379/0 --namespace shop`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runTop(cmd.Context(), s, f)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func runTop(ctx context.Context, s streams, f redisFlags) error {
	place, err := f.place(s.err)
	if err != nil {
		return err
	}
	if !terminal(s.out) {
		return usageError(errors.New("top needs a terminal: hotparam list and hotparam watch do without"))
	}
	client, err := place.client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all calls have ended
	return top.Run(ctx, client, top.Config{
		Namespace: place.namespace, Redis: redacted(place.redis.URL), Claimed: claimedUser(),
		Explain: func(err error) error { return place.explain(err, operatorUser) },
		In:      s.in, Out: s.out,
	})
}
