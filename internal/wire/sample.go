package wire

import (
	"bytes"
	"math"
	"strconv"
)

// sample is one of the samples of a line: values of a type, with fields. A line usually has one;
// Etsy's dialect allows several.
type sample struct {
	values, kind []byte
	rate, when   []byte // fields @ and T; nil if absent
}

// cut reads the first sample of s and returns the rest. more reports whether another one follows.
func (v *sample) cut(s []byte) (tail []byte, more, ok bool) {
	if v.values, s, ok = bytes.Cut(s, []byte{'|'}); !ok {
		return nil, false, false
	}
	end := bytes.IndexAny(s, "|:")
	v.kind, s, more = cutAt(s, end)
	if len(v.values) == 0 || len(v.kind) == 0 {
		return nil, false, false
	}
	for !more && len(s) > 0 {
		field := &v.rate
		switch end = bytes.IndexByte(s, '|'); s[0] {
		case '@':
			end = bytes.IndexAny(s, "|:")
		case 'T':
			field = &v.when
		default: // tags, c: (container), e: (external data), card: (cardinality), and future fields
			_, s, _ = cutAt(s, end)
			continue
		}
		if *field != nil {
			return nil, false, false
		}
		*field, s, more = cutAt(s, end)
	}
	return s, more, true
}

// cutAt cuts s at end, where a field ends. -1 means the end of s. more reports whether another
// sample follows.
func cutAt(s []byte, end int) (field, tail []byte, more bool) {
	if end < 0 {
		return s, nil, false
	}
	return s[:end], s[end+1:], s[end] == ':'
}

// read reads the part of the line after the name.
func (l *Line) read(s []byte) error {
	if end := len(s) - len("|c"); end > 0 && string(s[end:]) == "|c" { // the form of nearly all lines
		if n, ok := digits(s[:end]); ok && n <= MaxCount {
			l.N = n
			return nil
		}
	}
	sum, seen, counters := 0.0, 0.0, false
	for more := true; more; {
		var v sample
		var ok bool
		if s, more, ok = v.cut(s); !ok {
			return ErrMalformed
		}
		if string(v.kind) != "c" {
			continue
		}
		counters = true
		n, rate, ok := v.count()
		if !ok || !l.readTime(v.when) {
			return ErrMalformed
		}
		sum += n / rate
		seen += n
		l.Sampled = l.Sampled || rate < 1
	}
	switch {
	case !counters:
		return ErrNotCounter
	case sum < 0:
		return ErrNegative
	case sum > MaxCount:
		return ErrMalformed
	}
	// A sum that is whole except for the rounding of floats counts as whole: 9 at a rate of
	// 0.009 are 1000.
	if n := math.Round(sum); math.Abs(sum-n) <= 1e-15*sum {
		sum = n
	}
	whole := math.Floor(sum)
	l.N, l.Frac = int64(whole), sum-whole
	l.Seen = int64(max(0, seen))
	return nil
}

// readTime reads the field T, if there is one. A line has at most one time.
func (l *Line) readTime(field []byte) (ok bool) {
	if field == nil {
		return true
	}
	before := l.When
	l.When, ok = digits(field[1:])
	return ok && l.When > 0 && before == 0
}

// count returns the sum of the values of a counter's sample, and the rate at which they were
// sampled. The sum divided by the rate is at most MaxCount.
func (v *sample) count() (sum, rate float64, ok bool) {
	rate = 1
	if v.rate != nil {
		if rate, ok = parseFloat(v.rate[1:]); !ok || rate <= 0 || rate > 1 {
			return 0, 0, false
		}
	}
	for value := range bytes.SplitSeq(v.values, []byte{':'}) {
		f, ok := parseFloat(value)
		if !ok || math.Abs(f) > MaxCount { // bounded so that sums are exact
			return 0, 0, false
		}
		sum += f
	}
	return sum, rate, math.Abs(sum/rate) <= MaxCount
}

// parseFloat reads a decimal number: no hex, no infinity, no underscores.
func parseFloat(s []byte) (float64, bool) {
	if n, ok := digits(s); ok {
		return float64(n), true
	}
	if len(s) == 0 || len(s) > 32 {
		return 0, false
	}
	for _, c := range s {
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(string(s), 64)
	return f, err == nil
}
