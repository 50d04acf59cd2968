package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/listed"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/admitted"
	"github.com/hotparam/hotparam/internal/published"
)

// listFlags holds the flags of `hotparam list`.
type listFlags struct {
	redisFlags
	suspects, instances bool
	near                bool
	controls            bool
	wide, json          bool
}

func newList(s streams) *cobra.Command {
	var l listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys that are hot in Redis now",
		Example: `  hotparam list --namespace shop
  hotparam list --config hotparam.yaml   # with the file's namespace and Redis
  hotparam list --wide        # with routes, instances and callers
  hotparam list --suspects    # keys that may be hot
  hotparam list --near        # keys nearest to being hot, and the traffic of each rule
  hotparam list --instances   # instances and aggregators, with their rules
  hotparam list --controls    # what operators pin, block or allow
  hotparam list --redis redis://10.0.0.5:6379/0 --json | jq '.[0].key'`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen := 0
			for _, flag := range []bool{l.suspects, l.near, l.instances, l.controls} {
				if flag {
					chosen++
				}
			}
			if chosen > 1 {
				return usageError(fmt.Errorf("--suspects, --near, --instances and --controls: choose one"))
			}
			return list(cmd.Context(), s, l)
		},
	}
	l.redisFlags.register(cmd.Flags())
	cmd.Flags().BoolVar(&l.controls, "controls", false, "list the keys that operators pin, block or allow instead")
	cmd.Flags().BoolVar(&l.suspects, "suspects", false, "list the keys that may be hot instead")
	cmd.Flags().BoolVar(&l.near, "near", false, "list the 20 keys nearest to being hot instead, and the traffic of each rule")
	cmd.Flags().BoolVar(&l.instances, "instances", false, "list the instances and aggregators instead")
	cmd.Flags().BoolVar(&l.wide, "wide", false, "print below each hot key its top routes, instances and callers")
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON array, with all that is known")
	return cmd
}

const listTimeout = 3 * time.Second

func list(ctx context.Context, s streams, l listFlags) error {
	place, client, err := l.connect(s.err)
	if err != nil {
		return err
	}
	l.namespace = place.namespace
	defer func() { _ = client.Close() }() // the client has only read
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rows, err := l.read(ctx, client)
	if err != nil {
		return place.explain(err, readerUser)
	}
	if l.json {
		return writeJSON(s.out, rows.Values)
	}
	if rows.Len == 0 {
		fmt.Fprintf(s.err, "%s in namespace %q at %s\n", rows.None, l.namespace, redacted(place.redis.URL))
		fmt.Fprint(s.err, otherNamespaces(ctx, client, l.namespace))
		return nil
	}
	return rows.Table(s.out, l.wide)
}

// isPublished reports whether an aggregator publishes for a namespace.
func isPublished(ctx context.Context, client redis.UniversalClient, namespace string) bool {
	return client.PTTL(ctx, published.NewLayout(namespace).Beat).Val() > 0
}

// otherNamespaces returns a line with the existing namespaces if no aggregator publishes for this
// one. Otherwise it returns "".
func otherNamespaces(ctx context.Context, client redis.UniversalClient, namespace string) string {
	if isPublished(ctx, client, namespace) {
		return ""
	}
	spaces, err := hotkeys.ListNamespaces(ctx, client)
	switch {
	case len(spaces) > 0:
		return fmt.Sprintf("No aggregator publishes for this namespace, but some do for %s: choose one with --namespace.\n", strings.Join(spaces, ", "))
	case err != nil:
		return "No aggregator publishes for this namespace. The existing namespaces cannot be read.\n"
	}
	return "No aggregator publishes for this or any other namespace: start one, or name another Redis with --redis.\n"
}

// readAdmitted returns the admissions by all instances, or nil if they cannot be read.
func readAdmitted(ctx context.Context, client redis.UniversalClient, namespace string) *admitted.Admissions {
	members, err := hotkeys.ListMembers(ctx, client, namespace)
	if err != nil {
		return nil
	}
	instances, err := hotkeys.ListInstances(ctx, client, namespace)
	if err != nil {
		return nil
	}
	return admitted.New(members, instances)
}

// read reads the rows that the flags ask for.
func (l listFlags) read(ctx context.Context, client redis.UniversalClient) (listed.Rows, error) {
	switch {
	case l.suspects:
		suspects, err := hotkeys.ListSuspects(ctx, client, l.namespace)
		return listed.SuspectRows(suspects), err
	case l.near:
		s, err := hotkeys.ReadSummary(ctx, client, l.namespace)
		return listed.NearRows(s), err
	case l.instances:
		instances, err := hotkeys.ListInstances(ctx, client, l.namespace)
		if err != nil {
			return listed.Rows{}, err
		}
		members, err := hotkeys.ListMembers(ctx, client, l.namespace)
		return listed.MemberRows(listed.OfMembers(members, instances)), err
	case l.controls:
		controls, err := hotkeys.ListControls(ctx, client, l.namespace)
		return listed.ControlRows(controls), err
	}
	hot, err := hotkeys.List(ctx, client, l.namespace)
	return listed.HotRows(hot, readAdmitted(ctx, client, l.namespace)), err
}
