package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

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
