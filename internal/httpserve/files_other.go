//go:build !unix

package httpserve

import "math"

// maxFiles is not known.
func maxFiles() int { return math.MaxInt32 }
