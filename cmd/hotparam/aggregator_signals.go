package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// hangups are the SIGHUPs that arrive, which by default would end the process. One that
// arrives while another is acted on is kept; more are the same.
type hangups struct{ arrived chan os.Signal }

// catchHangups catches SIGHUP from now on, until stop is called.
func catchHangups() (h *hangups, stop func()) {
	h = &hangups{make(chan os.Signal, 1)}
	signal.Notify(h.arrived, syscall.SIGHUP)
	return h, func() { signal.Stop(h.arrived) }
}

// follow calls reload for each SIGHUP until ctx ends.
func (h *hangups) follow(ctx context.Context, reload func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.arrived:
			reload()
		}
	}
}
