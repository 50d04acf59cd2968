package accesslog

import (
	"bytes"
	"errors"
	"math"
	"strconv"
	"time"
)

var (
	errClock  = errors.New("no time such as [30/Jun/2017:00:00:00 +0000] is found")
	errTime   = errors.New("the time is neither RFC 3339 nor a number")
	errLayout = errors.New("the time is not in the layout that was given")
	errNumber = errors.New("the time is not a number")
	errRange  = errors.New("the time is not between the years 1970 and 2262")
)

// clockLen is the length of "30/Jun/2017:00:00:00 +0000".
const clockLen = 26

// parseClock parses the time of the combined format, clockLen bytes, in nanoseconds since the
// Unix epoch.
func parseClock(b []byte) (int64, error) {
	return parseLayout("02/Jan/2006:15:04:05 -0700", b, errClock)
}

// parseRFC3339 parses a time with any zone and any fraction, truncated to nanoseconds. As in ISO
// 8601, the colon in the zone may be missing, since strftime's %z writes none.
func parseRFC3339(b []byte) (int64, error) {
	text := bytes.ToUpper(b) // T and Z
	if len(text) > 10 && text[10] == ' ' {
		text[10] = 'T'
	}
	layout := time.RFC3339
	if n := len(text); n > 5 && (text[n-5] == '+' || text[n-5] == '-') {
		layout = "2006-01-02T15:04:05Z0700"
	}
	return parseLayout(layout, text, errTime)
}

// parseLayout parses a time in a layout of package time. It is UTC if the layout has no zone. If b
// has another form, the error is other.
func parseLayout(layout string, b []byte, other error) (int64, error) {
	t, err := time.Parse(layout, string(b))
	switch {
	case err != nil:
		return 0, other
	case t.Before(time.Unix(0, 0)) || t.After(time.Unix(0, math.MaxInt64)):
		return 0, errRange
	}
	return t.UnixNano(), nil
}

// parseNumber parses a time since the Unix epoch as a decimal number, in the coarsest unit that
// keeps it in range. So no time in range that is given in seconds is misread. A time in a finer
// unit is misread only if it is in the first months after 1970.
func parseNumber(b []byte) (int64, error) {
	if bytes.IndexByte(b, '-') == 0 {
		b = b[1:]
		if len(b) > 0 && isDigit(b[0]) {
			return 0, errRange
		}
		return 0, errTime
	}
	if bytes.ContainsAny(b, "eE") {
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return 0, errTime
		}
		if f < 0 || f > math.MaxInt64 {
			return 0, errRange
		}
		b = strconv.AppendFloat(nil, f, 'f', -1, 64)
	}
	unit := int64(time.Second)
	for whole, _, _ := bytes.Cut(b, []byte{'.'}); unit > 1; unit /= 1000 {
		if _, err := decimal(whole, unit); !errors.Is(err, errRange) {
			break
		}
	}
	n, err := decimal(b, unit)
	if errors.Is(err, errNumber) {
		err = errTime
	}
	return n, err
}

// decimal parses a number without sign or exponent, and returns it multiplied by unit.
func decimal(b []byte, unit int64) (int64, error) {
	whole, fraction, dotted := bytes.Cut(b, []byte{'.'})
	if !areDigits(whole) || dotted && !areDigits(fraction) {
		return 0, errNumber
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil || n > math.MaxInt64/unit {
		return 0, errRange
	}
	n *= unit
	for _, c := range fraction {
		unit /= 10
		n += int64(c-'0') * unit
	}
	if n < 0 { // the fraction made it too large
		return 0, errRange
	}
	return n, nil
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// areDigits reports whether b consists of digits, at least one.
func areDigits(b []byte) bool {
	return len(b) > 0 && bytes.IndexFunc(b, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
