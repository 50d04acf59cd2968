package status

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Hangups are the SIGHUPs that arrive, which by default would end the process. A SIGHUP that
// arrives while another is handled is kept; further ones are merged with it.
type Hangups struct{ arrived chan os.Signal }

// CatchHangups catches SIGHUP from now on, until stop is called.
func CatchHangups() (h *Hangups, stop func()) {
	h = &Hangups{make(chan os.Signal, 1)}
	signal.Notify(h.arrived, syscall.SIGHUP)
	return h, func() { signal.Stop(h.arrived) }
}

// Follow calls reload for each SIGHUP until ctx ends.
func (h *Hangups) Follow(ctx context.Context, reload func()) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.arrived:
			reload()
		}
	}
}
