//go:build !unix

package bench

import "time"

// monotonic is the wall clock, which is all that processes share here.
func monotonic() int64 { return time.Now().UnixNano() }

var started = time.Now()

// cpuTime is the time since the start, which is more.
func cpuTime() (time.Duration, error) { return time.Since(started), nil }
