// Command hotparam finds which parameter values of an API are hot right now,
// over all instances, and limits just those.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for limit.zone, where the system has none

	"github.com/redis/go-redis/v9/logging"
)

func main() {
	logging.Disable() // go-redis prints each failed dial; our own log has one line for an outage
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for an orderly end; with the handler gone, the
	// second one ends the process at once.
	context.AfterFunc(ctx, stop)
	code := run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
	stop()
	os.Exit(code)
}
