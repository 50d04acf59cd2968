package base

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff returns how long to wait after so many failures, from 0, such that the tries of a
// fleet whose parts fail together are spread. After f failures the delay is
//
//	d = min(least × 2^f, longest)
//
// and the wait is drawn evenly from [d/2, d): at most half of it is random, so that
// a wait is never much shorter than was meant. least must be at least 2 ns.
func Backoff(failures int, least, longest time.Duration) time.Duration {
	d := longest
	if failures < 62 && least <= longest>>failures {
		d = least << failures
	}
	return d/2 + rand.N(d/2)
}

// WaitBackoff waits as long as [Backoff] says, or until ctx ends.
func WaitBackoff(ctx context.Context, failures int, least, longest time.Duration) {
	t := time.NewTimer(Backoff(failures, least, longest))
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
