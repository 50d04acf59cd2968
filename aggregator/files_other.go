//go:build !unix

package aggregator

import "math"

// maxFiles is not known.
func maxFiles() int { return math.MaxInt32 }

// noDescriptor is not known.
func noDescriptor(error) bool { return false }
