package gateways

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns the processor time, user and system, that all threads of a process have
// used. It reads the process's clock, in nanoseconds: /proc/PID/stat counts in steps of 10 ms,
// which is too coarse for one second of requests.
func processorTime(pid int) (time.Duration, error) {
	const clockOfProcess = 2 // CPUCLOCK_SCHED, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|clockOfProcess), &t); err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w", pid, err)
	}
	return time.Duration(t.Nano()), nil
}
