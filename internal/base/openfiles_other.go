//go:build !unix

package base

import "math"

// OpenFileLimit returns math.MaxInt32, since the limit is not known on this system.
func OpenFileLimit() int { return math.MaxInt32 }

// IsOutOfFiles returns false, since the error is not known on this system.
func IsOutOfFiles(error) bool { return false }
