package decode

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// saidOfClocks returns the lines that a ClockLog writes in successive seconds, without the time.
func saidOfClocks(live int, seconds ...[]SenderClock) []string {
	var out bytes.Buffer
	l := NewClockLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "hint" {
			return slog.Attr{}
		}
		return a
	}})))
	var all []published.Instance
	for i := range live {
		all = append(all, published.Instance{Name: fmt.Sprintf("api-%d", i)})
	}
	for i, off := range seconds {
		l.Log(noon.Add(time.Duration(i)*time.Second), all, off)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func TestClockLog(t *testing.T) {
	is := func(i int, behind time.Duration) SenderClock {
		return SenderClock{fmt.Sprintf("api-%d", i), behind, true}
	}
	off := func(all ...SenderClock) []SenderClock { return all }
	slow, fast := is(1, 4*time.Second), is(2, -time.Hour)
	const slowLine = `level=WARN msg="the clock of an instance is wrong" instance=api-1 by="4s slow" corrected=true`
	const fastLine = `level=WARN msg="the clock of an instance is wrong" instance=api-2 by="1h0m0s fast" corrected=true`
	const rightLine = `level=INFO msg="the clock of an instance is right again" instance=api-1`
	for name, test := range map[string]struct {
		seconds [][]SenderClock
		want    []string
	}{
		"none is off":                {[][]SenderClock{nil, nil}, []string{""}},
		"each is named once":         {[][]SenderClock{off(slow), off(slow, fast), off(slow, fast), off(slow, fast)}, []string{slowLine, fastLine}},
		"again when it changes much": {[][]SenderClock{off(slow), off(is(1, 4900*time.Millisecond)), off(is(1, 9*time.Second))}, []string{slowLine, strings.Replace(slowLine, "4s", "9s", 1)}},
		"again when it comes anew":   {[][]SenderClock{off(slow), nil, off(slow), off(slow)}, []string{slowLine, rightLine, slowLine}},
		"most":                       {[][]SenderClock{off(is(0, 5*time.Second), is(1, 5*time.Second), is(2, 5*time.Second), is(3, 5*time.Second), is(4, 5*time.Second), is(5, 5*time.Second)), off(is(0, 5*time.Second), is(1, 5*time.Second), is(2, 5*time.Second), is(3, 5*time.Second), is(4, 5*time.Second), is(5, 5*time.Second))}, []string{`level=WARN msg="the clocks of most instances differ from the clock that places their counts: is that clock wrong?" instances="api-0 (5s slow), api-1 (5s slow), api-2 (5s slow), api-3 (5s slow), api-4 (5s slow), and 1 more" off=6 live=10`}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := saidOfClocks(10, test.seconds...); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// However many clocks are off, the number of lines is bounded, and each clock is named in the end.
func TestClockLogIsBounded(t *testing.T) {
	var off []SenderClock
	for i := range 45 {
		off = append(off, SenderClock{fmt.Sprintf("api-%d", i), time.Minute, true})
	}
	var seconds [][]SenderClock
	for range 10 {
		seconds = append(seconds, off)
	}
	if got := saidOfClocks(1000, seconds...); len(got) != clockLines.Burst+9 {
		t.Errorf("%d lines in ten seconds", len(got))
	}
	for range 40 {
		seconds = append(seconds, off)
	}
	named := make(map[string]int)
	for _, line := range saidOfClocks(1000, seconds...) {
		named[line]++
	}
	if len(named) != 45 {
		t.Errorf("%d were named, want 45", len(named))
	}
	var flood [][]SenderClock
	for i := range 3 {
		var all []SenderClock
		for k := range maxNamed {
			all = append(all, SenderClock{fmt.Sprintf("x-%d-%d", i, k), time.Minute, true})
		}
		flood = append(flood, all)
	}
	l := NewClockLog(nil)
	for i, all := range flood {
		l.Log(noon.Add(time.Duration(i)*time.Minute), make([]published.Instance, 3), all)
	}
	if len(l.named) > maxNamed {
		t.Errorf("%d are remembered", len(l.named))
	}
}
