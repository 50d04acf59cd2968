package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hotparam/hotparam/internal/base"
)

// variableOf returns the name of the environment variable of a flag.
func variableOf(flag string) string {
	return "HOTPARAM_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// withoutVariable holds the flags that a variable must not set: it would answer every question
// with yes, or make every command only print help.
var withoutVariable = map[string]bool{"help": true, "version": true, "yes": true}

// fromVariable marks a flag that has the value of its variable.
const fromVariable = "hotparam_variable"

// applyVariables sets flags that were not given from their variables, and rewrites addresses of
// Redis as URLs. It runs before each command, because help promises a variable for every flag.
func applyVariables(cmd *cobra.Command) error {
	var errs []error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if value := os.Getenv(variableOf(f.Name)); value != "" && !f.Changed && !withoutVariable[f.Name] {
			if err := f.Value.Set(value); err != nil {
				errs = append(errs, fmt.Errorf("%s %q: %w", variableOf(f.Name), shownValue(f.Name, value), err))
				return
			}
			f.Changed = true
			f.Annotations = map[string][]string{fromVariable: {"true"}}
		}
		if f.Name == "redis" && f.Changed {
			_ = f.Value.Set(redisURL(f.Value.String())) // setting a string flag never fails
		}
	})
	if err := errors.Join(errs...); err != nil {
		return usageError(err)
	}
	return nil
}

// shownValue returns a value without passwords, for errors.
func shownValue(flag, value string) string {
	if flag == "redis" || flag == "graphite" {
		return redacted(value)
	}
	return value
}

// byVariable reports whether a flag has the value of its variable.
func byVariable(cmd *cobra.Command, flag string) bool {
	f := cmd.Flags().Lookup(flag)
	return f != nil && f.Annotations[fromVariable] != nil
}

// redisURL returns the URL of a Redis that may be given as host:port.
func redisURL(s string) string {
	if s == "" || strings.Contains(s, "://") || !strings.Contains(s, ":") {
		return s // without a port the client's error explains the form of a URL
	}
	if !strings.Contains(s, "/") {
		s += "/0"
	}
	return "redis://" + s
}

// suggestFlag adds the most similar flag to the error of an unknown one.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	if near := base.NearestWord(unknown.GetSpecifiedName(), names); near != "" && len(unknown.GetSpecifiedName()) > 1 {
		return fmt.Errorf("%w\nDid you mean --%s?", err, near)
	}
	return err
}

// noCommand checks the arguments of a command that only has subcommands.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
		}
	}
	if near := base.NearestWord(args[0], names); near != "" {
		text += fmt.Sprintf("\nDid you mean %s %s?", cmd.CommandPath(), near)
	} else {
		text += "\nKnown are " + strings.Join(names, ", ") + "."
	}
	return usageError(errors.New(text))
}

// durationVar defines a duration flag. Its value may also be in days and weeks, as in the rules
// file.
func durationVar(flags *pflag.FlagSet, d *time.Duration, name string, otherwise time.Duration, usage string) {
	*d = otherwise
	flags.Var((*base.DurationFlag)(d), name, usage)
}
