package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/daemon"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/hotwords"
)

func newRules(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "Work with rules files",
		Example: `  hotparam rules lint hotparam.yaml
  hotparam rules explain --config hotparam.yaml GET '/search?q=phone'
  hotparam rules suggest --from http://127.0.0.1:9125
  hotparam rules schema > hotparam.schema.json`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLint(s), newExplain(s), newRulesSuggest(s), newSchema(s))
	return cmd
}

func newLint(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check rules files; exit 3 if one is not valid",
		Long: `Check rules files; - is standard input. All errors are reported with line, column and a
hint, and the exit code is 3. A valid file is printed in plain English, rule by rule,
including defaults, with warnings about likely mistakes. Warnings do not change the exit
code.`,
		Example: `  hotparam rules lint hotparam.yaml
  hotparam rules lint deploy/*.yaml
  helm template . | yq .data | hotparam rules lint -
  hotparam rules lint --json hotparam.yaml | jq -r '.[].message'`,
		Args: args("FILE..."),
		RunE: func(_ *cobra.Command, files []string) error {
			return lint(s, files, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array of {severity, file, line, column, message, hint} on standard output; the severity is error or warning")
	return cmd
}

// lint checks all files, even if the first is not valid.
func lint(s streams, paths []string, asJSON bool) error {
	all := config.Problems{} // encoded as [], not as null
	bad := false
	for _, path := range paths {
		file, problems, err := parseFile(s.in, path)
		if err != nil {
			return err
		}
		bad = bad || file == nil
		switch {
		case asJSON:
			all = append(all, problems...)
		case file == nil:
			err = problems.WriteText(s.err)
		default:
			err = describe(s.err, path, file)
		}
		if err != nil {
			return err
		}
	}
	if asJSON {
		if err := writeJSON(s.out, all); err != nil {
			return err
		}
	}
	if bad {
		return configError(errReported)
	}
	return nil
}

// parseFile reads a file, or standard input if the path is "-". If the file is not valid, it
// returns a nil file and its problems. Otherwise the problems are warnings.
func parseFile(in io.Reader, path string) (*config.File, config.Problems, error) {
	var file *config.File
	var err error
	if path == "-" {
		var text []byte
		if text, err = io.ReadAll(io.LimitReader(in, config.MaxSize+1)); err != nil {
			return nil, nil, fmt.Errorf("standard input: %w", err)
		}
		file, err = config.Parse("-", text)
	} else {
		file, err = config.Load(path)
	}
	var problems config.Problems
	switch {
	case err == nil:
		return file, file.Warnings(), nil
	case errors.As(err, &problems):
		return nil, problems, nil
	}
	return nil, nil, configError(err)
}

// describe writes a valid file in words.
func describe(w io.Writer, path string, file *config.File) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: good, %s, version %s\n", path, hotwords.Plural(len(file.Rules.Rules), "rule"), file.Rules.Version)
	fmt.Fprintf(&b, "  counts: %s\n", daemon.TransportWords(file))
	for _, words := range hotwords.Also(file.Rules) {
		fmt.Fprintf(&b, "  %s\n", words)
	}
	for i := range file.Rules.Rules {
		fmt.Fprintf(&b, "  %s\n", hotwords.Rule(&file.Rules.Rules[i]))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return file.Warnings().WriteText(w)
}
