package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil sleeps on the calling thread, which must be locked, and wakes up within some
// microseconds of the time. A Go timer is up to a millisecond late, which is longer than a request
// takes.
func sleepUntil(t time.Time) {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // otherwise 50 µs
	for wait := time.Until(t); wait > 0; wait = time.Until(t) {
		spec := unix.NsecToTimespec(int64(wait))
		_ = unix.Nanosleep(&spec, nil) // a signal ends it early
	}
}
