// Command benchpage measures with the code of `hotparam bench` and writes the page of the
// results, docs/BENCH.md with its pictures in docs/images.
//
//	benchpage bin/hotparam docs
//
// The first argument is the program whose parts are started. It takes some minutes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/internal/yardstick"
)

func main() {
	logging.Disable() // go-redis logs each failed dial
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: benchpage PROGRAM DIRECTORY")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, full([]string{os.Args[1], "bench", "part"}), os.Args[2])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchpage:", err)
		os.Exit(1)
	}
}

// run runs the measurements and writes nothing unless all of them succeeded.
func run(ctx context.Context, p plan, dir string) error {
	start := time.Now()
	f, err := p.measure(ctx, func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%4.0fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	})
	if err != nil {
		return err
	}
	images := filepath.Join(dir, "images")
	if err := os.MkdirAll(images, 0o755); err != nil {
		return err
	}
	for name, picture := range charts(p, f) {
		if err := os.WriteFile(filepath.Join(images, name), []byte(picture), 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "BENCH.md"), []byte(page(yardstick.ThisMachine(ctx), p, f)), 0o644)
}
