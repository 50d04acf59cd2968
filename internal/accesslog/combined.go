package accesslog

import (
	"bytes"
	"errors"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

var (
	errHost    = errors.New("it does not begin with a client address")
	errQuoted  = errors.New("no request in double quotes follows the time")
	errNone    = errors.New(`no request was logged ("-")`)
	errRequest = errors.New("the request is not METHOD target")
)

// parseCombined parses
//
//	host ident user [time] "METHOD target protocol" status bytes …
//
// The user may contain anything, including spaces and brackets. So the time is the first valid
// one in brackets.
func parseCombined(line []byte, r *parsedLine) error {
	if line[0] == '"' { // the whole line is quoted
		line = bytes.TrimSuffix(line[1:], []byte{'"'})
	}
	host, tail, found := bytes.Cut(line, []byte{' '})
	if !found || len(host) == 0 {
		return errHost
	}
	var err error
	if r.addr, err = parseAddr(host); err != nil {
		return err
	}
	if r.nanos, tail, err = cutTime(tail); err != nil {
		return err
	}
	text, tail, found := cutQuoted(tail)
	if !found {
		return errQuoted
	}
	if err := r.parseRequest(text); err != nil {
		return err
	}
	status, tail, _ := bytes.Cut(bytes.TrimLeft(tail, " "), []byte{' '})
	if r.status, err = parseStatus(status); err != nil {
		return err
	}
	size, _, _ := bytes.Cut(bytes.TrimLeft(tail, " "), []byte{' '})
	r.bytes = parseBytes(size)
	return nil
}

// cutTime finds "[time]" and returns it and the rest after it.
func cutTime(b []byte) (nanos int64, tail []byte, err error) {
	err = errClock
	for {
		i := bytes.IndexByte(b, '[')
		if i < 0 {
			return 0, nil, err
		}
		b = b[i+1:]
		if len(b) <= clockLen || b[clockLen] != ']' {
			continue
		}
		nanos, err = parseClock(b[:clockLen])
		switch {
		case err == nil:
			return nanos, b[clockLen+1:], nil
		case errors.Is(err, errRange): // it is the time, but out of range
			return 0, nil, err
		}
	}
}

// cutQuoted returns the text in double quotes at the beginning of b, still escaped.
func cutQuoted(b []byte) (text, tail []byte, found bool) {
	b = bytes.TrimLeft(b, " ")
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	b = b[1:]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++ // the next character does not end the text
		case '"':
			return b[:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// parseRequest parses "METHOD target protocol". Very old and broken clients send no protocol.
func (r *parsedLine) parseRequest(b []byte) error {
	if string(b) == "-" {
		return errNone
	}
	method, tail, found := bytes.Cut(b, []byte{' '})
	if !found {
		return errRequest
	}
	if !isMethod(method) {
		return errMethod
	}
	if i := bytes.LastIndexByte(tail, ' ') + 1; bytes.HasPrefix(tail[i:], []byte("HTTP/")) {
		tail = tail[:i]
	}
	target, err := parseTarget(unescape(bytes.Trim(tail, " ")))
	if err != nil {
		return err
	}
	r.method, r.target = method, target
	return nil
}

// unescape decodes the escapes of requests in logs of Apache and nginx: \", \\, \xHH and, only
// in Apache's, \n, \t and the like.
func unescape(b []byte) []byte {
	const letters, controls = "abfnrtv", "\a\b\f\n\r\t\v"
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:i]...)
	for ; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			switch next := b[i+1]; {
			case next == '"' || next == '\\':
				i++
			case next == 'x':
				if c, ok := hexByte(b[i+2:]); ok {
					out = append(out, c)
					i += 3
					continue
				}
			case strings.IndexByte(letters, next) >= 0:
				out = append(out, controls[strings.IndexByte(letters, next)])
				i++
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

// hexByte decodes the first two hexadecimal digits of b, and reports whether they are digits.
func hexByte(b []byte) (c byte, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	high, ok1 := base.HexDigit(b[0])
	low, ok2 := base.HexDigit(b[1])
	return high<<4 | low, ok1 && ok2
}
