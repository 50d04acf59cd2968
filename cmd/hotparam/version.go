package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/status"
)

// version is set by the linker for releases.
var version = ""

func readVersion() status.Build { return status.ReadBuild(version) }

// versionLine returns the output of version and --version.
func versionLine() string {
	v := readVersion()
	return fmt.Sprintf("hotparam %s (%s, %s)", v.Version, v.Go, v.Platform)
}

func newVersion(s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  hotparam version --json",
		Args:    args(),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return newJSON(s.out).Encode(readVersion())
			}
			_, err := fmt.Fprintln(s.out, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return cmd
}
