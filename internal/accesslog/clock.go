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
// Unix epoch. time.Parse takes 2.3 times as long, which would add a third to the cost of a whole
// line, and does not know leap seconds.
func parseClock(b []byte) (int64, error) {
	if b[2] != '/' || b[6] != '/' || b[11] != ':' || b[14] != ':' || b[17] != ':' || b[20] != ' ' {
		return 0, errClock
	}
	offset, ok := parseZone(b[21:])
	if !ok {
		return 0, errClock
	}
	seconds, ok := unixSeconds(date{digits(b[7:11]), month(b[3:6]), digits(b[:2])},
		timeOfDay{digits(b[12:14]), digits(b[15:17]), digits(b[18:20])})
	if !ok {
		return 0, errClock
	}
	return unixNanos(seconds-offset, 0)
}

// parseRFC3339 parses a time with any zone and any fraction, truncated to nanoseconds. As in ISO
// 8601, the colon in the zone may be missing, since strftime's %z writes none.
func parseRFC3339(b []byte) (int64, error) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[13] != ':' || b[16] != ':' {
		return 0, errTime
	}
	if b[10] != 'T' && b[10] != 't' && b[10] != ' ' {
		return 0, errTime
	}
	seconds, ok := unixSeconds(date{digits(b[:4]), digits(b[5:7]), digits(b[8:10])},
		timeOfDay{digits(b[11:13]), digits(b[14:16]), digits(b[17:19])})
	if !ok {
		return 0, errTime
	}
	zone := b[19:]
	var fraction int64
	if zone[0] == '.' {
		n := 1
		for unit := int64(time.Second) / 10; n < len(zone) && isDigit(zone[n]); n++ {
			fraction += int64(zone[n]-'0') * unit
			unit /= 10
		}
		if n == 1 {
			return 0, errTime
		}
		zone = zone[n:]
	}
	offset, ok := parseZone(zone)
	if !ok {
		return 0, errTime
	}
	return unixNanos(seconds-offset, fraction)
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
	whole, fraction, dotted := bytes.Cut(b, []byte{'.'})
	if len(whole) == 0 || dotted && len(fraction) == 0 {
		return 0, errTime
	}
	for _, part := range [][]byte{whole, fraction} {
		for _, c := range part {
			if !isDigit(c) {
				return 0, errTime
			}
		}
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil {
		return 0, errRange
	}
	unit := int64(time.Second)
	for n > math.MaxInt64/unit {
		unit /= 1000
	}
	nanos := uint64(n) * uint64(unit) // fits 64 bits even with the fraction
	for _, c := range fraction {
		unit /= 10
		nanos += uint64(c-'0') * uint64(unit)
	}
	if nanos > math.MaxInt64 {
		return 0, errRange
	}
	return int64(nanos), nil
}

// date and timeOfDay have a negative field if the text is not a number.
type (
	date      struct{ year, month, day int }
	timeOfDay struct{ hour, minute, second int }
)

// unixSeconds returns the time in Unix seconds, and reports whether it is valid. As in POSIX, a
// leap second equals the second after it.
func unixSeconds(d date, t timeOfDay) (int64, bool) {
	if d.year < 0 || d.month < 1 || d.month > 12 || d.day < 1 || d.day > 31 ||
		t.hour < 0 || t.hour > 23 || t.minute < 0 || t.minute > 59 || t.second < 0 || t.second > 60 {
		return 0, false
	}
	midnight := time.Date(d.year, time.Month(d.month), d.day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != d.day { // 31 April became 1 May
		return 0, false
	}
	return midnight.Unix() + int64(t.hour*3600+t.minute*60+t.second), true
}

func unixNanos(seconds, fraction int64) (int64, error) {
	const last = math.MaxInt64 / int64(time.Second)
	if seconds < 0 || seconds > last || seconds == last && fraction > math.MaxInt64%int64(time.Second) {
		return 0, errRange
	}
	return seconds*int64(time.Second) + fraction, nil
}

// parseZone parses Z, ±hh:mm or ±hhmm as seconds east of Greenwich.
func parseZone(b []byte) (offset int64, ok bool) {
	if len(b) == 1 {
		return 0, b[0]|0x20 == 'z'
	}
	if len(b) == 6 && b[3] == ':' {
		b = []byte{b[0], b[1], b[2], b[4], b[5]}
	}
	if len(b) != 5 || b[0] != '+' && b[0] != '-' {
		return 0, false
	}
	hours, minutes := digits(b[1:3]), digits(b[3:5])
	if hours < 0 || hours > 23 || minutes < 0 || minutes > 59 {
		return 0, false
	}
	offset = int64(hours*3600 + minutes*60)
	if b[0] == '-' {
		offset = -offset
	}
	return offset, true
}

// month returns the month from 1 to 12, or 0 if b names none.
func month(b []byte) int {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for i := 0; i < len(names); i += 3 {
		if names[i:i+3] == string(b) {
			return i/3 + 1
		}
	}
	return 0
}

// digits returns the value of a few decimal digits, or -1 if b is empty or has another
// character.
func digits(b []byte) int {
	if len(b) == 0 {
		return -1
	}
	n := 0
	for _, c := range b {
		if !isDigit(c) {
			return -1
		}
		n = n*10 + int(c-'0')
	}
	return n
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
