// Command releasemodules writes the files of a release in the layout of a module proxy and prints
// the tags to set.
//
//	releasemodules VERSION DIRECTORY
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/hotparam/hotparam/checks/release"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: releasemodules VERSION DIRECTORY")
		os.Exit(2)
	}
	modules, err := release.Build(context.Background(), release.Config{Root: ".", Version: os.Args[1], Out: os.Args[2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, m := range modules {
		fmt.Println("git tag", m.Tag)
	}
}
