//go:build unix

package base

import (
	"errors"
	"math"
	"syscall"
)

// OpenFileLimit returns the number of files that the process may have open, including one for
// each connection. It returns math.MaxInt32 if the number is not known.
func OpenFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// IsOutOfFiles reports whether err means that there are no file descriptors left.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
