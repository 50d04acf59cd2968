package main

import (
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/config"
)

func newSchema(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of rules files, for editors",
		Long: `Print the JSON schema (draft 2020-12) of rules files. With it an editor completes and
explains the names of fields, and marks errors while you type. lint checks more than the
schema does.`,
		Example: `  hotparam rules schema > hotparam.schema.json
  # then begin hotparam.yaml with:  # yaml-language-server: $schema=hotparam.schema.json`,
		Args: args(),
		RunE: func(*cobra.Command, []string) error { return writeJSON(s.out, config.Schema()) },
	}
}
