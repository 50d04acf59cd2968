package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/listed"
)

// listing is what `hotparam list` was asked for.
type listing struct {
	config              string
	url, namespace      string
	redis               config.Redis
	suspects, instances bool
	controls            bool
	wide, json          bool
}

func newList(s streams) *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the keys that are hot in Redis now",
		Example: `  hotparam list --namespace shop
  hotparam list --config hotparam.yaml   # with its namespace, and its way to Redis
  hotparam list --wide        # and where the requests come from
  hotparam list --suspects    # what may be hot and cannot be told yet
  hotparam list --instances   # who sends counts and who counts, by which rules
  hotparam list --controls    # what operators pin, block or allow
  hotparam list --redis redis://10.0.0.5:6379/0 --json | jq '.[0].key'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l.suspects && l.instances || l.controls && (l.suspects || l.instances) {
				return usageError(fmt.Errorf("--suspects, --instances and --controls: choose one"))
			}
			if err := l.settings(s.err); err != nil {
				return err
			}
			return list(cmd.Context(), s, l)
		},
	}
	l.registerPlace(cmd.Flags())
	cmd.Flags().BoolVar(&l.controls, "controls", false, "list the keys that operators pin, block or allow instead")
	cmd.Flags().BoolVar(&l.suspects, "suspects", false, "list the keys that may be hot instead")
	cmd.Flags().BoolVar(&l.instances, "instances", false, "list the instances and aggregators instead")
	cmd.Flags().BoolVar(&l.wide, "wide", false, "print below each hot key its top routes, instances and callers")
	cmd.Flags().BoolVar(&l.json, "json", false, "print a JSON array, with all that is known")
	return cmd
}

// registerPlace adds the flags that say where the keys are.
func (l *listing) registerPlace(flags *pflag.FlagSet) {
	// The variables are no defaults of the flags, or help would show a password.
	flags.StringVar(&l.config, "config", "", "rules `file` with the namespace and the way to Redis")
	flags.StringVar(&l.url, "redis", "", "Redis `URL` (default "+config.Aggregator{}.WithDefaults().Redis.URL+")")
	flags.StringVar(&l.namespace, "namespace", "", "`name` of the fleet, as in the rules file (default "+config.DefaultNamespace+")")
}

// settings are what flags say, else variables, else the file.
func (l *listing) settings(w io.Writer) error {
	space := config.DefaultNamespace
	if l.config != "" {
		file, err := loadConfig(w, l.config)
		if err != nil {
			return err
		}
		l.redis, space = file.Aggregator.Redis, file.Rules.Namespace
	}
	l.redis = config.Aggregator{Redis: l.redis}.WithDefaults().Redis
	override(&l.redis.URL, l.url, "HOTPARAM_REDIS")
	override(&space, l.namespace, "HOTPARAM_NAMESPACE")
	l.namespace = space
	return nil
}

const listTimeout = 3 * time.Second

func list(ctx context.Context, s streams, l listing) error {
	if !hotparam.ValidNamespace(l.namespace) {
		return usageError(fmt.Errorf("--namespace %q: want one or more of A-Z a-z 0-9 _ -", l.namespace))
	}
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(l.redis))
	if err != nil {
		return usageError(err)
	}
	defer func() { _ = client.Close() }() // nothing was written
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	rows, err := l.read(ctx, client)
	if err != nil {
		return noRedisError(err, l.redis.URL)
	}
	if l.json {
		enc := newJSON(s.out)
		enc.SetIndent("", "  ")
		return enc.Encode(rows.values())
	}
	if rows.len() == 0 {
		fmt.Fprintf(s.err, "%s in namespace %q at %s\n", rows.none(), l.namespace, redacted(l.redis.URL))
		return nil
	}
	return rows.table(s.out, l.wide)
}

// read reads what was asked for.
func (l listing) read(ctx context.Context, client redis.UniversalClient) (rows, error) {
	switch {
	case l.suspects:
		suspects, err := hotkeys.ListSuspects(ctx, client, l.namespace)
		return suspectRows(suspects), err
	case l.instances:
		instances, err := hotkeys.ListInstances(ctx, client, l.namespace)
		if err != nil {
			return nil, err
		}
		members, err := hotkeys.ListMembers(ctx, client, l.namespace)
		return memberRows(listed.OfMembers(members, instances)), err
	case l.controls:
		controls, err := hotkeys.ListControls(ctx, client, l.namespace)
		return controlRows(controls), err
	}
	hot, err := hotkeys.List(ctx, client, l.namespace)
	return hotRows(hot), err
}
