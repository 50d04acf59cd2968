package base

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff returns the time to wait after failures failures, counted from 0. It spreads the tries
// of a fleet whose members fail together. After f failures the delay is
//
//	d = min(least × 2^f, longest)
//
// and the wait is drawn evenly from [d/2, d). At most half of it is random, so that a wait is
// never much shorter than intended. least must be at least 2 ns.
func Backoff(failures int, least, longest time.Duration) time.Duration {
	d := longest
	if failures < 62 && least <= longest>>failures {
		d = least << failures
	}
	return d/2 + rand.N(d/2)
}

// WaitBackoff waits for the time that [Backoff] returns, or until ctx ends.
func WaitBackoff(ctx context.Context, failures int, least, longest time.Duration) {
	_ = Sleep(ctx, Backoff(failures, least, longest)) // the caller looks at ctx
}
