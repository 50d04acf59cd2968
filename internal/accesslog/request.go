package accesslog

import (
	"bytes"
	"errors"
	"strconv"
)

// Bounds of the parts of a request, in all formats.

const (
	maxMethod = 32  // the longest registered method has 17 letters
	maxAddr   = 255 // a host name has at most 253 characters
)

var (
	errMethod   = errors.New("the method has characters other than upper-case letters")
	errNoTarget = errors.New("the request has no target")
	errTarget   = errors.New("the target is not a path, a URL or *")
	errControl  = errors.New("the target holds a space or a control character")
	errAddr     = errors.New("the client address is longer than 255 bytes")
	errStatus   = errors.New("the status is not a number of up to three digits")
)

func isMethod(b []byte) bool {
	if len(b) == 0 || len(b) > maxMethod || b[0] < 'A' || b[0] > 'Z' {
		return false
	}
	for _, c := range b {
		if (c < 'A' || c > 'Z') && c != '-' && c != '_' { // M-SEARCH, VERSION-CONTROL, RPC_IN_DATA
			return false
		}
	}
	return true
}

// parseTarget returns path[?query] or "*". If b is an absolute URL, as clients send to proxies,
// it returns the path and the query of the URL (RFC 9112, 3.2).
func parseTarget(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errNoTarget
	}
	for _, c := range b {
		if c <= ' ' || c == 0x7f {
			return nil, errControl
		}
	}
	if b[0] == '/' || string(b) == "*" {
		return b, nil
	}
	scheme, after, found := bytes.Cut(b, []byte("://"))
	if !found || !isScheme(scheme) {
		return nil, errTarget
	}
	switch i := bytes.IndexAny(after, "/?"); {
	case i == 0 || len(after) == 0: // no host
		return nil, errTarget
	case i < 0:
		return []byte{'/'}, nil
	case after[i] == '?':
		return append([]byte{'/'}, after[i:]...), nil
	default:
		return after[i:], nil
	}
}

func isScheme(b []byte) bool {
	for _, c := range b {
		if letter := c | 0x20; letter < 'a' || letter > 'z' {
			return false
		}
	}
	return len(b) > 0
}

// parseAddr returns nil for "-", which means unknown.
func parseAddr(b []byte) ([]byte, error) {
	switch {
	case len(b) > maxAddr:
		return nil, errAddr
	case string(b) == "-":
		return nil, nil
	}
	return b, nil
}

// parseBytes returns 0 for "-", which Apache writes for a response without a body. It returns -1
// if b is no number, since custom formats have something else in that place.
func parseBytes(b []byte) int64 {
	if string(b) == "-" {
		return 0
	}
	const maxLength = 18 // digits; a longer number is no size
	if n, err := strconv.ParseUint(string(b), 10, 63); err == nil && len(b) <= maxLength {
		return int64(n)
	}
	return -1
}

// parseStatus returns 0 for "-", which means unknown.
func parseStatus(b []byte) (int, error) {
	if string(b) == "-" {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(b), 10, 16)
	if err != nil || len(b) > 3 {
		return 0, errStatus
	}
	return int(n), nil
}
