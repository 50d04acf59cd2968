package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hotparam/hotparam/cmd/internal/termtext"
	"github.com/hotparam/hotparam/internal/published"
)

// streams are the input and outputs of a command. It writes data to out and everything else to
// err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// terminal reports whether w is a terminal that a person looks at.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// newJSON returns an encoder to w. It does not escape "&", which keys contain, so that they stay
// readable.
func newJSON(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(termtext.NewEscapingWriter(w))
	enc.SetEscapeHTML(false)
	return enc
}

// writeJSON writes a single value for people to read, in lines.
func writeJSON(w io.Writer, v any) error {
	enc := newJSON(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printable escapes text from outside. All such text passes through it before it is shown.
var printable = termtext.Printable

// Exit codes.
const (
	exitOK = iota
	exitFailure
	exitUsage
	exitConfig
	exitUnreachable
)

// exitError is an error with an exit code.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func usageError(err error) error       { return &exitError{exitUsage, err} }
func configError(err error) error      { return &exitError{exitConfig, err} }
func unreachableError(err error) error { return &exitError{exitUnreachable, err} }

// errReported means that everything about a failure has been printed already.
var errReported = errors.New("reported")

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

// writeHelp writes the command's description, its examples and its flags. It uses no template,
// since text/template makes the linker keep every method of every type, which is five megabytes.
func writeHelp(cmd *cobra.Command, _ []string) {
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	if about = strings.TrimRightFunc(about, unicode.IsSpace); about != "" {
		fmt.Fprint(cmd.OutOrStdout(), about, "\n\n")
	}
	fmt.Fprint(cmd.OutOrStdout(), cmd.UsageString())
}

func writeUsage(cmd *cobra.Command) error {
	var b strings.Builder
	if cmd.HasExample() {
		fmt.Fprintf(&b, "Examples:\n%s\n\n", cmd.Example)
	}
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n  %s [command]\n\nCommands:", cmd.CommandPath())
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() || c.Name() == "help" {
				fmt.Fprintf(&b, "\n  %-*s %s", c.NamePadding(), c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags:\n" + strings.TrimRightFunc(cmd.LocalFlags().FlagUsages(), unicode.IsSpace))
	}
	_, err := fmt.Fprintln(cmd.OutOrStderr(), &b)
	return err
}

// args returns a check of a command's arguments against their names. "FILE" is required, "[N]" is
// optional, and the last one may be repeated if its name ends in "...".
func args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		command := strings.TrimPrefix(cmd.CommandPath(), "hotparam ")
		for i, name := range names {
			if i >= len(args) && !strings.HasPrefix(name, "[") {
				example, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n")
				return usageError(fmt.Errorf("%s: %s is missing, for example: %s", command, strings.TrimSuffix(name, "..."), example))
			}
		}
		if len(args) <= len(names) || len(names) > 0 && strings.HasSuffix(names[len(names)-1], "...") {
			return nil
		}
		takes := "no arguments"
		if len(names) > 0 {
			takes = strings.Join(names, " ")
		}
		return usageError(fmt.Errorf("%s: %q is too much: it takes %s and flags", command, args[len(names)], takes))
	}
}
