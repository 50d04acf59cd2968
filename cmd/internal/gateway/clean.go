package gateway

import "strings"

// CleanPath returns an escaped path as most applications see it, so that a client cannot evade a
// rule with another spelling of the same path. It removes path parameters (";v=1"), empty
// segments, "." and "..", even if their dots are escaped. The result begins with "/". It ends
// with "/" if the path ends with "/", "." or "..", as in RFC 3986, section 5.2.4. An escaped "/"
// stays escaped.
func CleanPath(path string) string {
	if isClean(path) {
		return path
	}
	b := make([]byte, 0, len(path)+1)
	ends := make([]int, 0, 16) // offsets in b at which its segments end
	directory := false
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		segment, _, _ = strings.Cut(segment, ";")
		dots := countDots(segment)
		directory = segment == "" || dots == 1 || dots == 2
		switch {
		case dots == 2:
			ends = ends[:max(0, len(ends)-1)]
			b = b[:0]
			if n := len(ends); n > 0 {
				b = b[:ends[n-1]]
			}
		case !directory:
			b = append(append(b, '/'), segment...)
			ends = append(ends, len(b))
		}
	}
	if directory || len(b) == 0 {
		b = append(b, '/')
	}
	return string(b)
}

// isClean reports whether path is certain to be clean. It can be false for a clean path.
func isClean(path string) bool {
	if path == "" || path[0] != '/' {
		return false
	}
	for i := range len(path) {
		switch path[i] {
		case ';':
			return false
		case '/':
			if i+1 == len(path) {
				break
			}
			if c := path[i+1]; c == '/' || c == '.' || c == '%' {
				return false
			}
		}
	}
	return true
}

// countDots returns 1 for the segment ".", 2 for "..", and 0 for any other. The dots may be
// escaped.
func countDots(segment string) (n int) {
	for segment != "" && n < 3 {
		switch {
		case segment[0] == '.':
			segment = segment[1:]
		case len(segment) >= 3 && strings.EqualFold(segment[:3], "%2e"):
			segment = segment[3:]
		default:
			return 0
		}
		n++
	}
	if n > 2 {
		return 0
	}
	return n
}
