package graphitesource

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Recorded answers of graphite-web 1.1 to data of StatsD 0.9, in testdata, are read correctly.
func TestRecordedAnswers(t *testing.T) {
	none := math.NaN()
	for _, test := range []struct {
		file string
		want []series
	}{
		{"empty.json", nil},
		{"legacy.json", []series{
			{"statsd.numStats", 1795314383, []float64{155, 198, 193, 161, 108, 199, 139, 196}},
			{"stats_counts.shop.search.hot_param.q_3Dshoes", 1795314383, []float64{none, none, none, 11, 22, 33, none, none}},
			{"stats_counts.shop.search.hot_param.q=caf_C3_A9", 1795314383, []float64{none, none, none, 20.0 / 3, 20.0 / 3, 20.0 / 3, none, none}},
		}},
		{"modern.json", []series{
			{"stats.statsd.numStats", 1795314383, []float64{none, none, 3, 6, 6, 6, 4, 4}},
			{"stats.counters.shop.search.hot_param.q_3Dshoes.count", 1795314383, []float64{none, none, none, 11, 22, 33, none, none}},
			{"stats.counters.shop.search.hot_param.q=caf_C3_A9.rate", 1795314383, []float64{none, none, none, 20.0 / 3, 20.0 / 3, 20.0 / 3, none, none}},
			{"stats.counters.shop.search.hot_param.q_3Dshoes.rate", 1795314383, []float64{none, none, none, 11, 22, 33, none, none}},
		}},
	} {
		got, err := decodeAnswer(bytes.NewReader(recorded(t, test.file)), shape{1, 8, 1 << 20})
		if err != nil || !sameSeries(got, test.want) {
			t.Errorf("%s: got %v, %v\nwant %v", test.file, got, err, test.want)
		}
	}
}

func sameSeries(a, b []series) bool {
	// NaN is not equal to itself.
	return fmt.Sprint(a) == fmt.Sprint(b)
}

func TestDecodeAnswer(t *testing.T) {
	one := func(points string) string { return `[{"target": "a", "datapoints": ` + points + `}]` }
	for _, test := range []struct {
		answer string
		step   int64
		want   failReason
		ok     bool
	}{
		{one(`[]`), 1, 0, true},
		{one(`[[1, 10]]`), 1, 0, true},
		{one(`[[1,10],[2.5,11],[null,12],[-1e3,13],[1e9999,14]]`), 1, 0, true},
		{one("\n[ [ 1 ,\n10 ] , [ 2 , 11 ] ]"), 1, 0, true},
		{one(`[[1,10],[2,20]]`), 10, 0, true},
		{`[{"datapoints": [[1,10]], "tags": {"a": [[[]]]}, "target": "a"}]`, 1, 0, true},
		{"[]\n", 1, 0, true},
		{one(`[[1,10],[2,20]]`), 1, wrongStep, false},
		{one(`[[1,10],[2,11]]`), 10, wrongStep, false},
		{one(`[[1,15]]`), 10, wrongStep, false},
		{one(`[[1,10],[2,10]]`), 1, wrongStep, false},
		{one(`[[1,11],[2,10]]`), 1, wrongStep, false},
		{one(`[[1,1],[1,2],[1,3],[1,4],[1,5],[1,6],[1,7],[1,8],[1,9]]`), 1, tooLarge, false},
		{`[{"target": "` + strings.Repeat("a", maxName+1) + `", "datapoints": []}]`, 1, tooLarge, false},
		{one(`[[1,10`), 1, malformed, false},
		{one(`[[1]]`), 1, malformed, false},
		{one(`[[]]`), 1, malformed, false},
		{one(`[1, 10]`), 1, malformed, false},
		{one(`[[1,10,2]]`), 1, malformed, false},
		{one(`[["1",10]]`), 1, malformed, false},
		{one(`[[true,10]]`), 1, malformed, false},
		{one(`[[[1],10]]`), 1, malformed, false},
		{one(`[[1,null]]`), 1, malformed, false},
		{one(`[[1,10.5]]`), 1, malformed, false},
		{one(`[[1,-10]]`), 1, malformed, false},
		{one(`[[1,99999999999999999999]]`), 1, malformed, false},
		{one(`[[NaN,10]]`), 1, malformed, false},
		{one(`null`), 1, malformed, false},
		{one(`"x"`), 1, malformed, false},
		{one(`{}`), 1, malformed, false},
		{`[{"target": "a"}]`, 1, malformed, false},
		{`[{"datapoints": []}]`, 1, malformed, false},
		{`[{"target": "a", "datapoints": [[1,10]]}, {"target": "b"}]`, 1, malformed, false},
		{`[null]`, 1, malformed, false},
		{`[1]`, 1, malformed, false},
		{`[] []`, 1, malformed, false},
		{`[]]`, 1, malformed, false},
		{`{}`, 1, malformed, false},
		{`null`, 1, malformed, false},
		{``, 1, malformed, false},
		{"<html>", 1, malformed, false},
		{strings.Repeat("[", 100_000), 1, malformed, false},
	} {
		_, err := decodeAnswer(strings.NewReader(test.answer), shape{test.step, 8, 1 << 20})
		var why *failure
		if (err == nil) != test.ok || err != nil && (!errors.As(err, &why) || why.reason != test.want) {
			t.Errorf("%.100q by %d s: told %v, want %v", test.answer, test.step, err, test.want)
		}
	}
}

// Reading an endless answer stops when it is too long, and the excess does not accumulate in
// memory.
func TestEndlessAnswers(t *testing.T) {
	for name, test := range map[string]struct{ first, again string }{
		"series":     {"[", `{"target":"a","datapoints":[]},`},
		"points":     {`[{"target":"a","datapoints":[`, `[1,1],`},
		"name":       {`[{"target":"`, "aaaaaaaaaaaaaaaa"},
		"tags":       {`[{"tags":`, `{"a":`},
		"whitespace": {"", "        "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeAnswer(io.MultiReader(strings.NewReader(test.first), &endless{test.again, 0}), shape{1, 8, 1 << 20})
			var why *failure
			if !errors.As(err, &why) || why.reason != tooLarge && (name != "tags" || why.reason != malformed) {
				t.Errorf("told %v", err)
			}
		})
	}
}

type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.text[e.at]
		e.at = (e.at + 1) % len(e.text)
	}
	return len(p), nil
}

func FuzzDecodeAnswer(f *testing.F) {
	for _, name := range []string{"empty.json", "legacy.json", "modern.json"} {
		f.Add(recorded(f, name), int64(1))
	}
	f.Add([]byte(`[{"target": "a;b=c", "datapoints": [[1e9999, 10], [-0.0, 20], [ null , 30 ]]}]`), int64(10))
	f.Add([]byte(`[{"datapoints": [[1, 10], [2, 11, 3]], "target": "\ud800"}]`), int64(1))
	f.Add([]byte(`[{"target": null, "datapoints": null}]`), int64(1))
	f.Add([]byte(`[[]]`), int64(60))
	f.Fuzz(func(t *testing.T, answer []byte, step int64) {
		if step < 1 || step > 60 {
			return
		}
		const most = 16
		all, err := decodeAnswer(bytes.NewReader(answer), shape{step, most, 1 << 20})
		var why *failure
		if err != nil && (!errors.As(err, &why) || all != nil || why.Error() == "") {
			t.Fatalf("told %v with %v", err, all)
		}
		l := newLedger(newNames(&Config{Series: DefaultSeries, Rules: rulesOf(hotRule("a", 1, time.Second))}, []watch{{prefix: "a.hot_param."}}), 5, 1)
		for i := range all {
			s := &all[i]
			if len(s.value) > most || s.first < 0 || s.first > maxTime {
				t.Fatalf("%v", s)
			}
			tally := new(answerCounts)
			if e := l.findEntry(s.name, tally); e != nil {
				l.recordPoints(e, s, 0, s.end(), tally)
			}
			for _, c := range tally.counts {
				if c.n <= 0 || c.point < s.first || c.point >= s.end() {
					t.Fatalf("counts %+v of %v", c, s)
				}
			}
		}
	})
}
