package spoe

import (
	"bytes"
	"net/http"
)

// addHeaders adds the headers in v to h, and reports whether v is well formed. v is either the
// binary of req.hdrs_bin, pairs of strings that end with two empty ones, or the text of req.hdrs,
// one header a line.
func addHeaders(h http.Header, v *value) bool {
	switch v.kind {
	case kindBinary:
		return addBinaryHeaders(h, v.bytes)
	case kindString:
		addTextHeaders(h, v.bytes)
		return true
	}
	return false
}

func addBinaryHeaders(h http.Header, b []byte) bool {
	r := payloadReader{unread: b}
	for len(r.unread) > 0 {
		name, text := r.text(), r.text()
		if r.bad {
			return false
		}
		if len(name) == 0 {
			break // the end
		}
		h.Add(string(name), string(text))
	}
	return true
}

func addTextHeaders(h http.Header, b []byte) {
	for len(b) > 0 {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\r\n"))
		if name, text, found := bytes.Cut(line, []byte(":")); found && len(name) > 0 {
			h.Add(string(name), string(bytes.TrimSpace(text)))
		}
	}
}
