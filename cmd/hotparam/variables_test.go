package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls f for each command except cobra's own.
func everyCommand(f func(*cobra.Command)) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		f(cmd)
		for _, child := range cmd.Commands() {
			if child.Name() != "help" && child.Name() != "completion" {
				walk(child)
			}
		}
	}
	walk(newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}))
}

// example returns a value that the flag accepts and that is not its default.
func example(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true"
	case "duration":
		return "7s"
	case "string", "stringArray":
		return "127.0.0.1:7"
	}
	return "7" // a number
}

// Help promises a variable for each flag of each command. A flag precedes its variable.
func TestEachFlagHasItsVariable(t *testing.T) {
	n := 0
	everyCommand(func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if withoutVariable[f.Name] {
				return
			}
			n++
			variable, value := variableOf(f.Name), example(f)
			t.Run(cmd.CommandPath()+" "+variable, func(t *testing.T) {
				t.Setenv(variable, value)
				parsed := func(args ...string) *pflag.Flag {
					root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
					found, _, err := root.Find(strings.Fields(cmd.CommandPath())[1:])
					if err != nil {
						t.Fatal(err)
					}
					found.Args, found.RunE = nil, func(*cobra.Command, []string) error { return nil }
					root.SetArgs(append(strings.Fields(cmd.CommandPath())[1:], args...))
					if err := root.ExecuteContext(context.Background()); err != nil {
						t.Fatal(err)
					}
					return found.Flags().Lookup(f.Name)
				}
				want := value
				if f.Name == "redis" {
					want = "redis://127.0.0.1:7/0"
				}
				if f.Value.Type() == "float64Slice" {
					want += ".000000"
				}
				if got := parsed(); strings.Trim(got.Value.String(), "[]") != want || !got.Changed {
					t.Errorf("%s=%s: the flag is %q", variable, value, got.Value)
				}
				if f.Value.Type() == "string" {
					if got := parsed("--" + f.Name + "=unix:///x"); got.Value.String() != "unix:///x" {
						t.Errorf("%s=%s precedes the flag: %q", variable, value, got.Value)
					}
				}
			})
		})
	})
	if n < 60 {
		t.Errorf("%d flags, want those of all commands", n)
	}
}

func TestVariablesThatAreBad(t *testing.T) {
	t.Setenv("HOTPARAM_FOR", "long")
	hotparamCommand(t, "demo").exits(t, exitUsage, `HOTPARAM_FOR "long"`)
	t.Setenv("HOTPARAM_FOR", "")
	t.Setenv("HOTPARAM_JSON", "perhaps")
	hotparamCommand(t, "version").exits(t, exitUsage, "HOTPARAM_JSON")
}

// HOTPARAM_YES would answer every question.
func TestNoVariableConfirms(t *testing.T) {
	for _, name := range []string{"yes", "help", "version"} {
		if !withoutVariable[name] {
			t.Errorf("--%s has a variable", name)
		}
	}
}

func TestVersionFlag(t *testing.T) {
	r := hotparamCommand(t, "--version")
	r.exits(t, exitOK)
	if want := hotparamCommand(t, "version"); r.out != want.out || r.out == "" {
		t.Errorf("%q, want %q", r.out, want.out)
	}
}
