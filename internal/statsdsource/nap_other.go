//go:build !linux

package statsdsource

import "time"

// nap does nothing: on this system a read takes one packet.
func nap(int, bool, time.Duration, time.Duration) {}
