package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/accesslog"
)

// completeTimeout bounds a completion: the shell waits for it, so slow answers of Redis are left
// out.
const completeTimeout = 300 * time.Millisecond

// flagWords holds the values of flags that take one of a few words, in any command.
var flagWords = map[string][]string{
	"source": config.Sources, "encoding": {"plain", "strict"}, "log-format": {"text", "json"}, "log-level": logLevels,
	"transport": demoTransports, "format": strings.Split(accesslog.Formats, ", "),
}

// addCompletions adds the shell's completion of flag values and arguments to all commands.
func addCompletions(cmd *cobra.Command) {
	register := func(flag string, f cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, f) // it fails only if one exists already
		}
	}
	for flag, words := range flagWords {
		register(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
	}
	register("namespace", completeNamespaces)
	register("rule", completeRules)
	register("config", cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt))
	switch cmd.Name() {
	case "lint":
		cmd.ValidArgsFunction = cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
	case "explain":
		cmd.ValidArgsFunction = completeRequest
	case "emit", "pin", "block", "allow", "release":
		cmd.ValidArgsFunction = completeKeys
	}
	for _, child := range cmd.Commands() {
		addCompletions(child)
	}
}

// atRedis calls read with a client and the place that the command's flags name.
func atRedis(cmd *cobra.Command, read func(context.Context, redis.UniversalClient, *redisPlace) []string) []string {
	if applyVariables(cmd) != nil {
		return nil
	}
	value := func(flag string) string {
		if f := cmd.Flags().Lookup(flag); f != nil {
			return f.Value.String()
		}
		return os.Getenv(variableOf(flag)) // the command has the setting only for completion
	}
	flags := redisFlags{config: value("config"), redis: redisURL(value("redis")), namespace: value("namespace")}
	place, client, err := flags.connect(io.Discard)
	if err != nil {
		return nil
	}
	defer func() { _ = client.Close() }() // the client has only read
	ctx, cancel := context.WithTimeout(context.Background(), completeTimeout)
	defer cancel()
	return read(ctx, client, &place)
}

func completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return atRedis(cmd, func(ctx context.Context, client redis.UniversalClient, _ *redisPlace) []string {
		found, _ := hotkeys.ListNamespaces(ctx, client) // namespaces found before an error are still offered
		return found
	}), cobra.ShellCompDirectiveNoFileComp
}

// completeKeys offers the hot keys and those with a control.
func completeKeys(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return atRedis(cmd, func(ctx context.Context, client redis.UniversalClient, place *redisPlace) (keys []string) {
		hot, _ := hotkeys.List(ctx, client, place.namespace) // without Redis there are no keys to offer
		for i := range hot {
			keys = append(keys, cobra.CompletionWithDesc(printable(hot[i].Text), "hot by "+hot[i].Rule))
		}
		controls, _ := hotkeys.ListControls(ctx, client, place.namespace)
		for i := range controls {
			keys = append(keys, cobra.CompletionWithDesc(printable(controls[i].Text), string(controls[i].Action)+" by "+controls[i].Rule))
		}
		return keys
	}), cobra.ShellCompDirectiveNoFileComp
}

// completeRules offers the rules of the file. Without a file it offers the rules of hot keys.
func completeRules(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return atRedis(cmd, func(ctx context.Context, client redis.UniversalClient, place *redisPlace) (ids []string) {
		if place.file != nil {
			for i := range place.file.Rules.Rules {
				r := &place.file.Rules.Rules[i]
				ids = append(ids, cobra.CompletionWithDesc(r.ID, r.Match.Route.String()))
			}
			return ids
		}
		hot, _ := hotkeys.List(ctx, client, place.namespace)
		for i := range hot {
			if !slices.Contains(ids, hot[i].Rule) {
				ids = append(ids, hot[i].Rule)
			}
		}
		return ids
	}), cobra.ShellCompDirectiveNoFileComp
}

func completeRequest(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"}, cobra.ShellCompDirectiveNoFileComp
}
