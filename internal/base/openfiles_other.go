//go:build !unix

package base

import "math"

// OpenFileLimit returns math.MaxInt32: it is not known here.
func OpenFileLimit() int { return math.MaxInt32 }

// IsOutOfFiles returns false: it is not known here.
func IsOutOfFiles(error) bool { return false }
