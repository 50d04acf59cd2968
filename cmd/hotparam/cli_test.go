package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/status"
)

// result is the outcome of a run of the command.
type result struct {
	code     int
	out, err string
}

// hotparamCommand runs the command as main does, without this machine's environment variables.
func hotparamCommand(t *testing.T, args ...string) result {
	t.Helper()
	return withInput(t, "", args...)
}

func withInput(t *testing.T, input string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	code := run(ctx, args, streams{in: strings.NewReader(input), out: &out, err: &errs})
	return result{code, out.String(), errs.String()}
}

// exits checks the exit code, and that a failure prints a remedy on stderr and nothing on stdout.
func (r result) exits(t *testing.T, code int, says ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	if code != exitOK && r.out != "" {
		t.Errorf("stdout of a failure: %q, want none", r.out)
	}
	for _, text := range says {
		if !strings.Contains(r.err, text) {
			t.Errorf("stderr does not say %q", text)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.out, r.err)
	}
}

const goodRules = `namespace: shop
rules:
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: {rate: 200/s}, limit: {rate: 50/s}}
`

// write writes hotparam.yaml into a temporary folder and returns its path.
func write(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "hotparam.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var exampleConfig = filepath.Join("..", "..", "deploy", "hotparam.yaml")

// Every command prints its help on stdout, with examples before the explanation.
func TestHelpShowsExamplesFirst(t *testing.T) {
	var walk func(path []string, cmd *cobra.Command)
	walk = func(path []string, cmd *cobra.Command) {
		t.Run(strings.Join(append([]string{"hotparam"}, path...), " "), func(t *testing.T) {
			r := hotparamCommand(t, append(path, "--help")...)
			r.exits(t, exitOK)
			if r.err != "" {
				t.Errorf("stderr: %q, want none", r.err)
			}
			example, usage, flags := strings.Index(r.out, "\nExamples:\n"), strings.Index(r.out, "\nUsage:\n"), strings.Index(r.out, "\nFlags:\n")
			if example < 0 || usage < example || flags < usage {
				t.Errorf("want examples, usage, flags in this order:\n%s", r.out)
			}
			if !strings.Contains(r.out, "\n  "+cmd.CommandPath()+" ") {
				t.Errorf("no example runs %q:\n%s", cmd.CommandPath(), r.out)
			}
			for _, flag := range []string{"redis", "namespace"} {
				if f := cmd.Flags().Lookup(flag); f != nil && f.DefValue != "" {
					t.Errorf("--%s has the default %q: help would show the user's variable, which may hold a password", flag, f.DefValue)
				}
			}
		})
		for _, child := range cmd.Commands() {
			if child.Name() != "help" && child.Name() != "completion" { // cobra's own
				walk(append(slices.Clone(path), child.Name()), child)
			}
		}
	}
	t.Setenv("HOTPARAM_REDIS", "redis://user:geheim@127.0.0.1:6379/0")
	walk(nil, newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard}))
}

// The examples are commands with flags that exist.
func TestExamplesOfHelpParse(t *testing.T) {
	root := newRoot(streams{in: strings.NewReader(""), out: io.Discard, err: io.Discard})
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(cmd.Example) {
			_, command, found := strings.Cut(line, "hotparam ")
			if !found {
				continue
			}
			command, _, _ = strings.Cut(command, "#")
			command, _, _ = strings.Cut(command, "|")
			command, _, _ = strings.Cut(command, " >")
			example, args, err := root.Find(shellWords(command))
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := example.ParseFlags(args); err != nil {
				t.Errorf("%s: %v", line, err)
			}
			if err := example.ValidateArgs(example.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
}

// shellWords splits a command into words. Single quotes keep spaces.
func shellWords(command string) (words []string) {
	for i, part := range strings.Split(command, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

func TestUsageErrors(t *testing.T) {
	good := write(t, goodRules)
	for _, test := range []struct {
		args []string
		says string
	}{
		{[]string{"frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"--frobnicate"}, "--frobnicate"},
		{[]string{"rules", "frobnicate"}, `unknown command "frobnicate"`},
		{[]string{"lsit"}, "Did you mean hotparam list?"},
		{[]string{"rules", "lnit", good}, "Did you mean hotparam rules lint?"},
		{[]string{"list", "--namspace", "shop"}, "Did you mean --namespace?"},
		{[]string{"rules", "lint"}, "rules lint: FILE is missing, for example: hotparam rules lint hotparam.yaml"},
		{[]string{"aggregator", "--config", good, "--log-level", "loud"}, "--log-level"},
		{[]string{"emit", "GET /search?q=phone"}, "--config is missing"},
		{[]string{"emit", "--config", good, "GET /search?q=phone", "0"}, "\"0\": want a whole number N"},
		{[]string{"emit", "--config", good, "GET /other?q=phone"}, "no rule with hot makes such a key"},
		{[]string{"emit", "--config", good, "GET /search?page=1"}, "no rule with hot makes such a key"},
		{[]string{"emit", "--config", good, "--rule", "x", "GET /search?q=phone"}, "no such rule"},
		{[]string{"version", "now"}, `version: "now" is too much: it takes no arguments`},
		{[]string{"aggregator"}, "--config is missing"},
		{[]string{"aggregator", good}, good},
		{[]string{"aggregator", "--config", good, "--encoding", "rot13"}, "--encoding"},
		{[]string{"aggregator", "--config", good, "--log-format", "xml"}, "--log-format"},
		{[]string{"aggregator", "--config", good, "--dry-run", "--listen", "8125"}, "--listen"},
		{[]string{"aggregator", "--config", good, "--dry-run", "--http", "127.0.0.1:web"}, "--http"},
		{[]string{"list", "--namespace", "a b"}, "--namespace"},
		{[]string{"list", "--redis", "localhost"}, "redis URL"},
		{[]string{"replay"}, "replay: LOG is missing, for example: hotparam replay"},
		{[]string{"block", "--for", "1m"}, "block: KEY is missing"},
		{[]string{"rules", "explain", "--config", good, "GET"}, "rules explain: URL is missing"},
		{[]string{"emit", "--config", good, "k", "1", "2"}, `emit: "2" is too much: it takes KEY [N] and flags`},
		{[]string{"replay", "access.log"}, "--by"},
		{[]string{"replay", "--by", "q", "--hot", "200", "access.log"}, "--hot"},
		{[]string{"replay", "--by", "q", "--hot", "200/s", "--limit", "x", "access.log"}, "--limit"},
		{[]string{"replay", "--config", good, "--hot", "200/s", "access.log"}, "--config"},
		{[]string{"replay", "--by", "q", "--hot", "200/s", "--format", "xml", "access.log"}, "xml"},
		{[]string{"replay", "--by", "q", "--hot", "200/s", "--speed", "-1", "access.log"}, "--speed"},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			hotparamCommand(t, test.args...).exits(t, exitUsage, test.says, "--help")
		})
	}
}

func TestVersion(t *testing.T) {
	r := hotparamCommand(t, "version")
	r.exits(t, exitOK)
	if !strings.HasPrefix(r.out, "hotparam ") || strings.Count(r.out, "\n") != 1 || r.err != "" {
		t.Errorf("stdout %q, stderr %q, want one line on stdout", r.out, r.err)
	}
	r = hotparamCommand(t, "version", "--json")
	r.exits(t, exitOK)
	var v status.Build
	decodeJSON(t, r.out, &v)
	if v.Go == "" || v.Platform == "" || v.Version == "" {
		t.Errorf("version --json: %+v, want all of version, go and platform", v)
	}
}

// decodeJSON reads one JSON value and requires that nothing follows it.
func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Fatalf("%q goes on behind the first value", text)
	}
}

// If output cannot be written, because of a full disk or a reader that has closed, the command
// fails instead of succeeding silently.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, args := range [][]string{
		{"version"},
		{"version", "--json"},
		{"rules", "lint", "--json", exampleConfig},
		{"replay", "--by", "q", "--hot", "10/s", "--json", "-"},
		{"replay", "--by", "q", "--hot", "10/s", "-"},
	} {
		var errs bytes.Buffer
		code := run(t.Context(), args, streams{in: strings.NewReader(accessLog()), out: fullDisk{}, err: &errs})
		if code != exitFailure || !strings.Contains(errs.String(), errFull.Error()) {
			t.Errorf("%v: exit code %d, stderr %q, want %d and the reason", args, code, errs.String(), exitFailure)
		}
	}
}

var errFull = errors.New("no space left")

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }
