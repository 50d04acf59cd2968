// Package bodies holds the bodies of requests that rules read, so that handlers read the same bytes.
package bodies

import (
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/hotparam/hotparam/rules"
)

// Reason is the reason why a body could not be read.
type Reason uint8

const (
	OK        Reason = iota
	TooLarge         // larger than bodies.max
	Encoded          // with a Content-Encoding
	Malformed        // violates the syntax of its type
	NoRoom           // would exceed bodies.total
	Failed           // an error of the connection, or the end of the request's context
	Upgraded         // another protocol follows
	reasons
)

// Counts count the bytes of bodies that a guard holds, and the bodies read and unread.
type Counts struct {
	Held   atomic.Int64
	Read   atomic.Int64
	Unread [reasons]atomic.Int64
}

// SourceOf returns the source of the parameters in a body of the request's type. It
// ignores the parameters after the type, however malformed, as handlers do. As in
// [http.Request.Form], a url-encoded form counts only with POST, PUT and PATCH.
func SourceOf(in *http.Request) (source rules.Source, ok bool) {
	name := strings.TrimLeft(in.Header.Get("Content-Type"), " \t")
	if i := strings.IndexAny(name, "; \t,"); i >= 0 {
		name = name[:i]
	}
	const suffix = "+json"
	switch {
	case strings.EqualFold(name, "application/x-www-form-urlencoded"):
		m := in.Method
		return rules.Form, m == http.MethodPost || m == http.MethodPut || m == http.MethodPatch
	case strings.EqualFold(name, Multipart):
		return rules.Form, true
	case strings.EqualFold(name, "application/json"), len(name) > len(suffix) && strings.EqualFold(name[len(name)-len(suffix):], suffix):
		return rules.JSON, true
	}
	return 0, false
}

// Look returns why a body of up to max bytes cannot be read, by the request's header, or OK.
func Look(in *http.Request, max int64) Reason {
	switch {
	case isUpgrade(in):
		return Upgraded
	case isEncoded(in.Header):
		return Encoded
	case in.ContentLength > max:
		return TooLarge
	}
	return OK
}

// isUpgrade reports whether the request switches to another protocol after its header.
func isUpgrade(in *http.Request) bool {
	if in.Method == http.MethodConnect {
		return true
	}
	if len(in.Header["Upgrade"]) == 0 {
		return false
	}
	for _, line := range in.Header["Connection"] {
		for token := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.Trim(token, " \t"), "upgrade") {
				return true
			}
		}
	}
	return false
}

// isEncoded reports whether the body is compressed, or claims to be.
func isEncoded(h http.Header) bool {
	for _, line := range h["Content-Encoding"] {
		if line != "" && !strings.EqualFold(line, "identity") {
			return true
		}
	}
	return false
}

// Multipart is the type of a form of several parts.
const Multipart = "multipart/form-data"
