package loglimit

import (
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestLimit(t *testing.T) {
	const none = -1
	for name, test := range map[string]struct {
		rate LineRate
		at   []time.Duration // of the events
		want []int           // unlogged of each, or none
	}{
		"one at a time": {LineRate{1, 10 * time.Second},
			[]time.Duration{0, time.Second, 9999 * time.Millisecond, 10 * time.Second, 11 * time.Second, time.Minute},
			[]int{0, none, none, 2, none, 1}},
		"some at once": {LineRate{3, 10 * time.Second},
			[]time.Duration{0, 0, 0, 0, 9 * time.Second, 10 * time.Second, 10 * time.Second, 20 * time.Second},
			[]int{0, 0, 0, none, none, 2, none, 1}},
		"a burst anew after a pause": {LineRate{2, 10 * time.Second},
			[]time.Duration{0, 0, 0, time.Hour, time.Hour, time.Hour},
			[]int{0, 0, none, 1, 0, none}},
	} {
		t.Run(name, func(t *testing.T) {
			var l Limit
			for i, at := range test.at {
				unlogged, ok := l.Allow(test.rate, start.Add(at))
				if !ok {
					unlogged = none
				}
				if unlogged != test.want[i] {
					t.Errorf("event %d, after %v: %d, want %d", i, at, unlogged, test.want[i])
				}
			}
		})
	}
}

// No span ever has more lines than its bound.
func TestLimitBounds(t *testing.T) {
	var l Limit
	rate := LineRate{Burst: 4, Every: 15 * time.Second}
	lines, events := 0, 0
	for at := time.Duration(0); at < time.Hour; at += 100 * time.Millisecond {
		events++
		if unlogged, ok := l.Allow(rate, start.Add(at)); ok {
			lines, events = lines+1, events-unlogged-1
		}
	}
	if most := rate.Burst + int(time.Hour/rate.Every); lines < most-1 || lines > most {
		t.Errorf("%d lines in an hour, want %d at most", lines, most)
	}
	if events < 0 || events >= 150 {
		t.Errorf("%d events are neither logged nor counted since the last line", events)
	}
}

func TestOutage(t *testing.T) {
	const every = 10 * time.Second
	var o Outage
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	if _, log := o.End(at(0)); log {
		t.Error("an end without a beginning")
	}
	if !o.Begin(every, at(1)) || o.Begin(every, at(2)) || o.Begin(every, at(30)) {
		t.Error("an outage has one beginning")
	}
	if lasted, log := o.End(at(31)); !log || lasted != 30*time.Second {
		t.Errorf("the end: %v, %v", lasted, log)
	}
	if _, log := o.End(at(31)); log {
		t.Error("a second end")
	}
	if !o.Begin(every, at(32)) {
		t.Error("the next outage is not logged")
	}
	o.End(at(33))
	if o.Begin(every, at(34)) {
		t.Error("a beginning too soon after another")
	}
	if _, log := o.End(at(35)); log {
		t.Error("the end of an outage whose beginning was not logged")
	}
	if o.Begin(every, at(36)); !o.Begin(every, at(42)) {
		t.Error("an outage that lasts is not logged")
	}
}

// An outage has a line at its beginning and one at its end, however many tries fail.
func TestOutageReports(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var o Outage
	for i, err := range []error{nil, io.EOF, io.EOF, nil, nil} {
		o.Report(log, time.Minute, start.Add(time.Duration(i)*time.Second), err, OutageText{Begun: "begins", Over: "ends"})
	}
	if want := "level=WARN msg=begins err=EOF\nlevel=INFO msg=ends after=2s\n"; text.String() != want {
		t.Errorf("logged\n%swant\n%s", text.String(), want)
	}
}
