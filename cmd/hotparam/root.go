package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/internal/published"
)

// run runs the program within this process and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var coded *exitError
	code := exitFailure
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		code = coded.code
	case strings.HasPrefix(err.Error(), "unknown command"):
		code = exitUsage // cobra has no type for it
	}
	if !errors.Is(err, errReported) {
		for i, line := range strings.Split(err.Error(), "\n") {
			if i == 0 {
				line = "hotparam: " + line
			}
			fmt.Fprintln(s.err, printable(line))
		}
	}
	if code == exitUsage {
		fmt.Fprintln(s.err, "Run 'hotparam --help', or a command with --help, for examples.")
	}
	return code
}

func newRoot(s streams) *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "hotparam",
		Short: "Find the parameter values of an API that are hot right now, and limit just those",
		Long: `Find the parameter values of an API that are hot right now, and limit just those.

Each flag of each command has a variable, HOTPARAM_ and the flag's name: HOTPARAM_REDIS
is --redis, HOTPARAM_LOG_LEVEL is --log-level. A flag precedes its variable, which
precedes the file.`,
		Example: `  hotparam demo                                  # see it work: real traffic, nothing to install
  hotparam replay --by q --hot 60/1m access.log  # what was hot in my log?
  hotparam aggregator --config hotparam.yaml     # run the aggregator
  hotparam list                                  # what is hot now?
  hotparam doctor --config hotparam.yaml         # are there problems?`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if version {
				_, err := fmt.Fprintln(s.out, versionLine())
				return err
			}
			return cmd.Help()
		},
		SilenceErrors:     true,
		SilenceUsage:      true,
		DisableAutoGenTag: true,
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usageError(suggestFlag(cmd, err)) })
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return applyVariables(cmd) }
	root.Flags().BoolVarP(&version, "version", "v", false, "version for hotparam")
	root.SetUsageFunc(writeUsage)
	root.SetHelpFunc(writeHelp)
	root.AddCommand(
		newDemo(s), newAggregator(s), newGuard(s), newReplay(s), newFollow(s), newList(s), newWatch(s), newTop(s), newHistory(s),
		newControl(s, published.ControlPin), newControl(s, published.ControlBlock), newControl(s, published.ControlAllow), newControl(s, ""), newOperate(s),
		newRules(s), newDoctor(s), newEmit(s), newBench(s), newVersion(s),
	)
	addCompletions(root)
	return root
}
