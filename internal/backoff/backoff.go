// Package backoff spreads the tries of a fleet whose parts fail together.
//
// After f failures the delay is
//
//	d = min(least × 2^f, longest)
//
// and the wait is drawn evenly from [d/2, d): at most half of it is random, so that
// a wait is never much shorter than was meant.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// After returns how long to wait after so many failures, from 0. least must be at
// least 2 ns.
func After(failures int, least, longest time.Duration) time.Duration {
	d := longest
	if failures < 62 && least <= longest>>failures {
		d = least << failures
	}
	return Jitter(d)
}

// Wait waits as long as [After] says, or until ctx ends.
func Wait(ctx context.Context, failures int, least, longest time.Duration) {
	t := time.NewTimer(After(failures, least, longest))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// Jitter returns a random wait of at least d/2 and less than d, which is at least 2 ns.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2) }
