// Command releasearchives makes the archives of a release, their bills of materials and their
// sums in a directory.
//
//	releasearchives VERSION DIRECTORY
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hotparam/hotparam/checks/archives"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: releasearchives VERSION DIRECTORY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	made, err := archives.Build(ctx, archives.Config{
		Root: ".", Version: os.Args[1], Out: os.Args[2], Package: "./cmd/hotparam", Tags: "lean,grpcnotrace", Architectures: []string{"amd64", "arm64"},
		Files: map[string]string{
			"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md", "hotparam.yaml": "deploy/hotparam.yaml",
			"systemd/hotparam-aggregator.service": "deploy/systemd/hotparam-aggregator.service",
			"systemd/hotparam-guard.service":      "deploy/systemd/hotparam-guard.service",
			"systemd/hotparam-follow.service":     "deploy/systemd/hotparam-follow.service",
			"systemd/hotparam-operate.service":    "deploy/systemd/hotparam-operate.service",
			"prometheus/alerts.yml":               "deploy/prometheus/alerts.yml",
			"grafana/hotparam.json":               "deploy/grafana/hotparam.json",
		},
		Shells: []string{"bash", "zsh", "fish"},
	})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, name := range made {
		fmt.Println(name)
	}
}
