//go:build unix

// Package openfiles knows how many files the process may have open, of which each
// connection is one.
package openfiles

import (
	"errors"
	"math"
	"syscall"
)

// Limit returns how many files the process may have open, math.MaxInt32 if that is not
// known.
func Limit() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return int(limit.Cur)
}

// AreShort reports whether err is for want of file descriptors.
func AreShort(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
