package sdnotify

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// monotonic is the time of CLOCK_MONOTONIC, by which systemd tells a reload from the one
// before it.
func monotonic() string {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return "MONOTONIC_USEC=0"
	}
	return fmt.Sprintf("MONOTONIC_USEC=%d", now.Nano()/1000)
}
