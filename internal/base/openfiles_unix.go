//go:build unix

package base

import (
	"errors"
	"math"
	"syscall"
)

// OpenFileLimit returns how many files the process may have open, of which each connection is
// one, or math.MaxInt32 if that is not known.
func OpenFileLimit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// IsOutOfFiles reports whether err is for want of file descriptors.
func IsOutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
