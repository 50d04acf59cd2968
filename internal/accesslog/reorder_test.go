package accesslog

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// disorderOf counts the entries that came after one of a later time, and returns how far the
// worst is behind the newest. It compares all entries with each other.
func disorderOf(in, out []Entry) (d Disorder) {
	place := make(map[string]int) // in which they came
	for i, e := range in {
		place[e.Target] = i
	}
	for i, e := range out {
		given := time.Time{}
		for _, other := range out[:i] {
			if other.Time.After(given) {
				given = other.Time
			}
		}
		if !e.Time.Before(given) {
			continue
		}
		d.Late++
		newest := e.Time
		for _, other := range in[:place[e.Target]] {
			if other.Time.After(newest) {
				newest = other.Time
			}
		}
		d.By = max(d.By, newest.Sub(e.Time))
	}
	return d
}

// A log whose lines are up to some time late is returned in the order of time if the buffer is as
// long. Entries of equal times keep the order of their lines. With a shorter buffer, late entries
// are counted.
func TestReorder(t *testing.T) {
	late, inOrder := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		var in []Entry
		at, ends := midnight, make(map[string]time.Time)
		var most time.Duration // for which a request took
		for i := range rapid.IntRange(1, 80).Draw(t, "requests") {
			at = at.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Minute}).Draw(t, "pause"))
			took := time.Duration(rapid.Int64Range(0, 20_000).Draw(t, "took")) * time.Millisecond
			e := entry(0, i)
			e.Time = at
			ends[e.Target], most = at.Add(took), max(most, took)
			in = append(in, e)
		}
		slices.SortStableFunc(in, func(a, b Entry) int { return ends[a.Target].Compare(ends[b.Target]) })
		var text bytes.Buffer
		for _, e := range in {
			text.WriteString(jsonLine(e))
		}
		span := rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, 20 * time.Second, most}).Draw(t, "reorder")
		got, stats, err := drain(t, []string{"-"}, Options{Stdin: &text, Reorder: max(1, span)})
		if err != nil || len(got) != len(in) {
			t.Fatal(err, len(got))
		}
		want := slices.Clone(in)
		slices.SortStableFunc(want, func(a, b Entry) int { return a.Time.Compare(b.Time) })
		if same := slices.Equal(got, want); same != (stats.Disorder.Late == 0) || !same && span >= most {
			t.Fatalf("reorder by %v of lines up to %v late: sorted is %v, %+v\ngot  %v\nwant %v", span, most, same, stats.Disorder, got, want)
		}
		if d := disorderOf(in, got); stats.Disorder != d {
			t.Fatalf("told %+v, counted %+v", stats.Disorder, d)
		}
		if stats.Disorder.Late == 0 {
			inOrder++
			return
		}
		late++
		if stats.Disorder.By <= span {
			t.Fatalf("told late by %v with a buffer of %v", stats.Disorder.By, span)
		}
		// The reported lateness is the length of a buffer that would have sufficed.
		text.Reset()
		for _, e := range in {
			text.WriteString(jsonLine(e))
		}
		if got, _, err = drain(t, []string{"-"}, Options{Stdin: &text, Reorder: stats.Disorder.By}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v: with a buffer of %v it is not sorted either", err, stats.Disorder.By)
		}
	})
	if !testing.Short() && (late == 0 || inOrder == 0) {
		t.Errorf("%d logs were out of order, %d in order: want both", late, inOrder)
	}
}

// However long the configured buffer, it takes no more than its bound. Beyond that the earliest
// entries are returned before their time.
func TestReorderIsBounded(t *testing.T) {
	b := newReorder(time.Hour)
	e := entry(0, 0)
	b.maxBytes = 10 * e.size()
	given := 0
	for i := range 100 {
		e := entry(i, 0)
		if late := b.add(e); late > 0 {
			t.Errorf("late by %v in a log that is in order", late)
		}
		for got, ok := b.next(); ok; got, ok = b.next() {
			if want := entry(given, 0); *got != want {
				t.Fatalf("%v, want %v", got, want)
			}
			given++
		}
		if held := len(b.heap); held > 10 {
			t.Fatalf("%d requests are held, there is room for 10", held)
		}
	}
	if given != 90 || !b.full {
		t.Errorf("%d given, full is %v", given, b.full)
	}
	if late := b.add(entry(50, 1)); late != 49*time.Second {
		t.Errorf("late by %v, want 49s", late)
	}
	if e, ok := b.next(); !ok || *e != entry(50, 1) {
		t.Errorf("what is late is not given at once: %v", e)
	}
	if rest := b.heap[len(b.heap):cap(b.heap)]; slices.ContainsFunc(rest, func(w *waiting) bool { return w != nil }) {
		t.Errorf("requests that were given are still referred to")
	}
}

// A log that is being written is followed: an entry is returned when the buffer's time has passed
// by the wall clock, even if no other line arrives. An entry of an old log, whose reader is
// delayed, is not returned early.
func TestReorderWhileNoLineComes(t *testing.T) {
	for name, c := range map[string]struct {
		behind time.Duration // the log, of the wall clock
		want   time.Duration // time until the entry is returned
	}{
		"live":                   {0, 10 * time.Second},
		"stamped at the start":   {4 * time.Second, 6 * time.Second},
		"a clock that is ahead":  {-3 * time.Second, 13 * time.Second},
		"an old log":             {time.Hour, time.Minute},
		"a clock an hour ahead ": {-time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, out := io.Pipe()
				l, err := Open([]string{"-"}, Options{Stdin: in})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				e := entry(0, 0)
				e.Time = began.Add(-c.behind).UTC()
				go func() {
					io.WriteString(out, jsonLine(e))
					time.Sleep(time.Minute)
					out.Close()
				}()
				n := 0
				for got, err := range l.Entries(t.Context()) {
					n++
					if took := time.Since(began); err != nil || got != e || took < c.want || took > c.want+idleEvery {
						t.Errorf("%v after %v, want it after %v; %v", got, took, c.want, err)
					}
				}
				if n != 1 {
					t.Errorf("%d entries", n)
				}
			})
		})
	}
}

// The consumer may stop at an entry that it gets while no line arrives.
func TestStopWhileNoLineComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := io.Pipe()
		defer out.Close() // ends the Read that was left behind
		l, err := Open([]string{"-"}, Options{Stdin: in})
		if err != nil {
			t.Fatal(err)
		}
		e := entry(0, 0)
		e.Time = time.Now()
		go func() { io.WriteString(out, jsonLine(e)+jsonLine(e)) }()
		n := 0
		for range l.Entries(t.Context()) {
			n++
			break
		}
		if n != 1 {
			t.Errorf("%d entries", n)
		}
	})
}

// A truncated log still yields the entries that were held back.
func TestReorderOfABrokenLog(t *testing.T) {
	text := gzipped([]byte(strings.Repeat(combinedLine(entry(1, 0))+combinedLine(entry(0, 1)), 20_000)))
	got, stats, err := drain(t, []string{"-"}, Options{Stdin: bytes.NewReader(text[:len(text)/2])})
	if err == nil || !strings.Contains(err.Error(), "cut off") || len(got) < 1000 || int64(len(got)) != stats.Good || stats.Disorder.Late > 0 {
		t.Errorf("%v, %d entries, %+v", err, len(got), stats)
	}
	if !slices.IsSortedFunc(got, func(a, b Entry) int { return a.Time.Compare(b.Time) }) {
		t.Error("not in order")
	}
}

func BenchmarkReorder(b *testing.B) {
	for _, span := range []time.Duration{0, 10 * time.Second} {
		b.Run(fmt.Sprint(span), func(b *testing.B) {
			order, at := newReorder(span), midnight
			e := entry(0, 0)
			for i := 0; b.Loop(); i++ {
				at = at.Add(100 * time.Microsecond) // 100,000 of them are held
				e.Time = at.Add(-time.Duration(i*7919%1000) * time.Millisecond)
				order.add(e)
				for _, ok := order.next(); ok; _, ok = order.next() {
				}
			}
		})
	}
}
