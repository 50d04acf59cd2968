package graphitesource

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

// Bounds of an answer.
const (
	maxBytes  = 64 << 20
	maxSeries = 200_000
	maxName   = 4096 // bytes
)

// shape bounds an acceptable answer.
type shape struct {
	step   int64 // seconds between the points
	points int64 // largest number of points of one series
	bytes  int64 // largest size of the answer
}

// series is one series of an answer, with a point for each step.
type series struct {
	name  string
	first int64     // number of the first point, that is, its time in steps since the epoch
	value []float64 // NaN for a point without a value
}

// end returns the number of the point after the last.
func (s *series) end() int64 { return s.first + int64(len(s.value)) }

// newest returns the number of the newest point that has a value.
func (s *series) newest() (int64, bool) {
	for i := len(s.value) - 1; i >= 0; i-- {
		if !math.IsNaN(s.value[i]) {
			return s.first + int64(i), true
		}
	}
	return 0, false
}

// decodeAnswer decodes a JSON answer of the render API. It returns the whole answer or an error:
//
//	[{"target": "name", "datapoints": [[value or null, unix seconds], …], …}, …]
//
// Unknown fields are ignored.
func decodeAnswer(r io.Reader, want shape) ([]series, error) {
	limited := &io.LimitedReader{R: r, N: want.bytes + 1}
	all, err := decodeSeries(json.NewDecoder(limited), want)
	if limited.N <= 0 {
		return nil, failed(tooLarge, fmt.Errorf("the answer is longer than %d bytes", want.bytes))
	}
	return all, err
}

func decodeSeries(d *json.Decoder, want shape) ([]series, error) {
	if err := expect(d, json.Delim('[')); err != nil {
		return nil, err
	}
	var all []series
	var one struct {
		Target     *string         `json:"target"`
		Datapoints json.RawMessage `json:"datapoints"`
	}
	for d.More() {
		one.Target, one.Datapoints = nil, one.Datapoints[:0]
		if err := d.Decode(&one); err != nil {
			return nil, notJSON(err)
		}
		switch {
		case one.Target == nil:
			return nil, failed(malformed, errors.New("a series has no target"))
		case len(all) >= maxSeries:
			return nil, failed(tooLarge, fmt.Errorf("the answer has more than %d series", maxSeries))
		case len(*one.Target) > maxName:
			return nil, failed(tooLarge, fmt.Errorf("the name of a series has %d bytes, more than %d", len(*one.Target), maxName))
		}
		s := series{name: *one.Target}
		if err := s.points(one.Datapoints, want); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if err := expect(d, json.Delim(']')); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, failed(malformed, errors.New("something stands behind the answer"))
	}
	return all, nil
}

func expect(d *json.Decoder, want json.Delim) error {
	got, err := d.Token()
	if err != nil {
		return notJSON(err)
	}
	if got != want {
		return failed(malformed, fmt.Errorf("the answer has %v where a list of series has %v", shortened(fmt.Sprint(got)), want))
	}
	return nil
}

func notJSON(err error) error {
	return failed(malformed, fmt.Errorf("the answer is no JSON as graphite-web writes it: %w", err))
}

// points decodes a list of points, which is known to be valid JSON.
func (s *series) points(raw []byte, want shape) error {
	p := points{unread: raw}
	if !p.skipByte('[') {
		return failed(malformed, fmt.Errorf("series %q: no list of datapoints", shortened(s.name)))
	}
	for !p.skipByte(']') {
		if len(s.value) > 0 {
			p.skipByte(',')
		}
		value, when, ok := p.point()
		if !ok {
			return failed(malformed, fmt.Errorf("series %q: a datapoint is no [value, time]", shortened(s.name)))
		}
		if len(s.value) == 0 {
			s.first = when / want.step
		}
		if apart := when - (s.first+int64(len(s.value))-1)*want.step; apart != want.step {
			return failed(wrongStep, fmt.Errorf("series %q: the points are %d s apart and not %d s: step must be StatsD's flush interval and the finest retention of Graphite, which must reach as far back as is asked for", shortened(s.name), apart, want.step))
		}
		if int64(len(s.value)) >= want.points {
			return failed(tooLarge, fmt.Errorf("series %q has more than the %d points that were asked for", shortened(s.name), want.points))
		}
		s.value = append(s.value, value)
	}
	return nil
}

// points is a scanner of a list of points.
type points struct{ unread []byte }

// skipByte skips white space, and the byte c if it comes next. It reports whether c did.
func (p *points) skipByte(c byte) bool {
	for len(p.unread) > 0 && (p.unread[0] == ' ' || p.unread[0] == '\n' || p.unread[0] == '\r' || p.unread[0] == '\t') {
		p.unread = p.unread[1:]
	}
	if len(p.unread) == 0 || p.unread[0] != c {
		return false
	}
	p.unread = p.unread[1:]
	return true
}

// point reads one [value, time] pair.
func (p *points) point() (value float64, timestamp int64, ok bool) {
	if !p.skipByte('[') {
		return 0, 0, false
	}
	word := p.word()
	value = math.NaN()
	if string(word) != "null" {
		var err error
		// Graphite writes infinity as 1e9999.
		if value, err = strconv.ParseFloat(string(word), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, 0, false
		}
	}
	if !p.skipByte(',') {
		return 0, 0, false
	}
	timestamp, err := strconv.ParseInt(string(p.word()), 10, 64)
	if err != nil || timestamp <= 0 || timestamp > maxTime || !p.skipByte(']') {
		return 0, 0, false
	}
	return value, timestamp, true
}

// maxTime is a time in seconds far beyond any point of Graphite, and far from an overflow in
// nanoseconds.
const maxTime = 1 << 33

// word returns the bytes up to the next one that ends a number.
func (p *points) word() []byte {
	p.skipByte(0) // skip white space; JSON has no NUL
	end := 0
	for end < len(p.unread) && p.unread[end] != ',' && p.unread[end] != ']' && p.unread[end] != ' ' && p.unread[end] != '\n' {
		end++
	}
	word := p.unread[:end]
	p.unread = p.unread[end:]
	return word
}

// shortened returns s cut to a length that suits an error.
func shortened(s string) string {
	const limit = 80
	if len(s) > limit {
		return s[:limit] + "…"
	}
	return s
}
