package accesslog

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// clockFormat parses a time, in nanoseconds since the Unix epoch.
type clockFormat func([]byte) (int64, error)

// clockNames are the named formats.
var clockNames = []struct {
	name string
	read clockFormat
}{
	{"rfc3339", parseRFC3339},
	{"s", inUnit(time.Second)},
	{"ms", inUnit(time.Millisecond)},
	{"us", inUnit(time.Microsecond)},
	{"ns", inUnit(time.Nanosecond)},
	{"clf", func(b []byte) (int64, error) {
		if b = bytes.Trim(b, "[]"); len(b) != clockLen {
			return 0, errClock
		}
		return parseClock(b)
	}},
}

// parseClockFormat parses the name of a format, or a layout of Go's package time.
func parseClockFormat(s string) (clockFormat, error) {
	if s == "" {
		return nil, nil
	}
	for _, f := range clockNames {
		if f.name == s {
			return f.read, nil
		}
	}
	if !strings.Contains(s, "06") || !strings.Contains(s, "05") {
		return nil, fmt.Errorf(`time format %q is unknown; give rfc3339, s, ms, us, ns (since 1970), clf, or a layout such as "2006-01-02 15:04:05.000"`, s)
	}
	return func(b []byte) (int64, error) { return parseLayout(s, b, errLayout) }, nil
}

// inUnit returns the format of numbers of a unit, with or without a fraction.
func inUnit(unit time.Duration) clockFormat {
	return func(b []byte) (int64, error) {
		n, err := decimal(b, int64(unit))
		if err != nil {
			return 0, errNumber
		}
		return n, nil
	}
}

// parseClock parses a time in the shape's format, or in any known format if it has none.
func (s *shape) parseClock(b []byte) (int64, error) {
	switch {
	case s.clock != nil:
		return s.clock(b)
	case len(b) >= len("2006/01/02 15:04:05") && b[4] == '/' && b[7] == '/' && b[10] == ' ':
		// Caddy's wall, wall_milli and wall_nano have no zone.
		return parseLayout("2006/01/02 15:04:05", b, errTime)
	case len(b) == clockLen && b[2] == '/':
		return parseClock(b)
	}
	return parseTime(b)
}

// parseTime parses RFC 3339, or a number.
func parseTime(text []byte) (int64, error) {
	if len(text) >= len("2006-01-02T15:04:05Z") && text[4] == '-' {
		return parseRFC3339(text)
	}
	return parseNumber(text)
}
