package main

import (
	"errors"
	"fmt"

	"github.com/hotparam/hotparam/config"
	"github.com/spf13/cobra"
)

func newRules(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rules",
		Short:   "Work with rules files",
		Example: "  hotparam rules lint hotparam.yaml",
		Args:    args(cobra.NoArgs), // an unknown command is an error, not a wish for help
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLint(s), newExplain(s), newSchema(s))
	return cmd
}

func newLint(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint FILE",
		Short: "Check a rules file; exit 3 if it is not valid",
		Long: `Check a rules file. All errors are reported with line, column and a hint, and the
exit code is 3. A valid file is printed in plain English, rule by rule, defaults
included, with warnings about what probably does not do what was meant; they leave the
exit code at 0.`,
		Example: `  hotparam rules lint hotparam.yaml
  hotparam rules lint --json hotparam.yaml | jq -r '.[].message'`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, files []string) error {
			return lint(s, files[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "an array of {severity, file, line, column, message, hint} on standard output; the severity is error or warning")
	return cmd
}

func lint(s streams, path string, asJSON bool) error {
	if asJSON {
		return lintJSON(s, path)
	}
	file, err := loadConfig(s.err, path)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.err, "%s: good, %s, version %s\n", path, plural(len(file.Rules.Rules), "rule"), file.Rules.Version)
	fmt.Fprintf(s.err, "  counts: %s\n", transportWords(file))
	if words := redactWords(file.Rules.Redact.Names); words != "" {
		fmt.Fprintf(s.err, "  %s\n", words)
	}
	if words := clientWords(&file.Rules.Client); words != "" {
		fmt.Fprintf(s.err, "  %s\n", words)
	}
	if words := bodiesWords(file.Rules); words != "" {
		fmt.Fprintf(s.err, "  %s\n", words)
	}
	for i := range file.Rules.Rules {
		fmt.Fprintf(s.err, "  %s\n", ruleWords(&file.Rules.Rules[i]))
	}
	return file.Warnings().WriteText(s.err)
}

func lintJSON(s streams, path string) error {
	file, err := config.Load(path)
	problems := config.Problems{} // encodes as [], not as null
	switch {
	case err == nil:
		problems = append(problems, file.Warnings()...)
	case !errors.As(err, &problems):
		return configError(err)
	}
	enc := newJSON(s.out)
	enc.SetIndent("", "  ")
	if err := enc.Encode(problems); err != nil {
		return err
	}
	if err != nil {
		return configError(errReported)
	}
	return nil
}
