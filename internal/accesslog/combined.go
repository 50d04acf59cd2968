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

// parseCombined reads
//
//	host ident user [time] "METHOD target protocol" status bytes …
//
// The user may hold anything, spaces and brackets too: the first bracket with a
// time in it is taken.
func parseCombined(line []byte, r *request) error {
	if line[0] == '"' { // the whole line is quoted
		line = bytes.TrimSuffix(line[1:], []byte{'"'})
	}
	host, rest, found := bytes.Cut(line, []byte{' '})
	if !found || len(host) == 0 {
		return errHost
	}
	var err error
	if r.addr, err = parseAddr(host); err != nil {
		return err
	}
	if r.nanos, rest, err = cutTime(rest); err != nil {
		return err
	}
	text, rest, found := cutQuoted(rest)
	if !found {
		return errQuoted
	}
	if err := r.parseRequest(text); err != nil {
		return err
	}
	status, rest, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte{' '})
	if r.status, err = parseStatus(status); err != nil {
		return err
	}
	size, _, _ := bytes.Cut(bytes.TrimLeft(rest, " "), []byte{' '})
	r.bytes = parseBytes(size)
	return nil
}

// cutTime finds "[time]" and gives what follows it.
func cutTime(b []byte) (nanos int64, rest []byte, err error) {
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
		case errors.Is(err, errRange): // it is the time, though not a sane one
			return 0, nil, err
		}
	}
}

// cutQuoted takes the text in double quotes that b begins with, still escaped.
func cutQuoted(b []byte) (text, rest []byte, found bool) {
	b = bytes.TrimLeft(b, " ")
	if len(b) == 0 || b[0] != '"' {
		return nil, nil, false
	}
	b = b[1:]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++ // whatever follows does not end the text
		case '"':
			return b[:i], b[i+1:], true
		}
	}
	return nil, nil, false
}

// parseRequest reads "METHOD target protocol". Very old and broken clients send
// no protocol.
func (r *request) parseRequest(b []byte) error {
	if string(b) == "-" {
		return errNone
	}
	method, rest, found := bytes.Cut(b, []byte{' '})
	if !found {
		return errRequest
	}
	if !isMethod(method) {
		return errMethod
	}
	if i := bytes.LastIndexByte(rest, ' ') + 1; bytes.HasPrefix(rest[i:], []byte("HTTP/")) {
		rest = rest[:i]
	}
	target, err := parseTarget(unescape(bytes.Trim(rest, " ")))
	if err != nil {
		return err
	}
	r.method, r.target = method, target
	return nil
}

// unescape undoes how Apache and nginx escape a request: \", \\, \xHH and, of
// Apache alone, \n, \t and the like.
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

// hexByte returns the byte that the first two digits of b stand for, and whether they are digits.
func hexByte(b []byte) (c byte, ok bool) {
	if len(b) < 2 {
		return 0, false
	}
	high, ok1 := base.HexDigit(b[0])
	low, ok2 := base.HexDigit(b[1])
	return high<<4 | low, ok1 && ok2
}
