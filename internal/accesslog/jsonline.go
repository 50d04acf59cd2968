package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
)

var (
	errJSON   = errors.New("it is not a JSON object")
	errFields = errors.New("time, method and uri are not all there")
	errString = errors.New("method, uri or remote_addr is not a string")
)

// parseJSON reads an object with the fields time, method, uri, status, bytes and
// remote_addr. encoding/json only judges whether the line is JSON: decoding with
// it into a struct takes twice the time, ignores the case of names, and replaces
// bytes that are not UTF-8.
func parseJSON(line []byte, r *request) error {
	if line[0] != '{' || !json.Valid(line) {
		return errJSON
	}
	var clock, method, uri, status, size, addr []byte
	for name, value := range fields(line) {
		if string(value) == "null" {
			value = nil
		}
		switch string(unquote(name)) {
		case "time":
			clock = value
		case "method":
			method = value
		case "uri":
			uri = value
		case "status":
			status = value
		case "bytes", "body_bytes_sent":
			size = value
		case "remote_addr":
			addr = value
		}
	}
	if clock == nil || method == nil || uri == nil {
		return errFields
	}
	if method[0] != '"' || uri[0] != '"' || addr != nil && addr[0] != '"' {
		return errString
	}
	var err error
	if r.nanos, err = parseTime(clock); err != nil {
		return err
	}
	if r.method = unquote(method); !isMethod(r.method) {
		return errMethod
	}
	if r.target, err = parseTarget(unquote(uri)); err != nil {
		return err
	}
	if addr != nil {
		if r.addr, err = parseAddr(unquote(addr)); err != nil {
			return err
		}
	}
	if size != nil {
		r.bytes = parseBytes(unquote(size))
	}
	if status != nil {
		r.status, err = parseStatus(unquote(status))
	}
	return err
}

// parseTime reads a JSON value: RFC 3339, or a number, quoted or not.
func parseTime(value []byte) (int64, error) {
	text := unquote(value)
	if len(text) >= len("2006-01-02T15:04:05Z") && text[4] == '-' {
		return parseRFC3339(text)
	}
	return parseNumber(text)
}

// fields yields the names and values of an object, as they are written. The line
// is valid JSON and begins with a brace, so that nothing needs to be checked.
func fields(line []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		rest := bytes.TrimLeft(line[1:], space)
		for rest[0] == '"' {
			n := valueLen(rest)
			name := rest[:n]
			rest = bytes.TrimLeft(rest[n:], space+":")
			n = valueLen(rest)
			value := rest[:n]
			rest = bytes.TrimLeft(rest[n:], space+",")
			if !yield(name, value) {
				return
			}
		}
	}
}

const space = " \t\r\n"

// valueLen is the length of the JSON value that b begins with.
func valueLen(b []byte) int {
	depth := 0
	for i := 0; ; i++ {
		switch b[i] {
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default: // within an object, or a number or a word
			if depth == 0 {
				return bytes.IndexAny(b, space+",}")
			}
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
}

// unquote gives the text of a JSON string; another value stays as it is.
func unquote(value []byte) []byte {
	if value[0] != '"' {
		return value
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	var s string
	if json.Unmarshal(value, &s) != nil {
		return nil // cannot happen: the line is valid JSON
	}
	return []byte(s)
}
