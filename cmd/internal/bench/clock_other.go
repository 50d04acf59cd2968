//go:build !unix

package bench

import "time"

// monotonic returns the wall clock, the only clock that processes share here.
func monotonic() int64 { return time.Now().UnixNano() }

var started = time.Now()

// cpuTime returns the time since the start, which overestimates the processor time.
func cpuTime() (time.Duration, error) { return time.Since(started), nil }
