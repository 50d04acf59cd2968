package bench

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"
)

func TestRequest(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	steps := 0
	r, err := Request(t.Context(), RequestConfig{Rounds: 1, Slice: 10 * time.Millisecond, Progress: func(done, total int) {
		if steps++; done != steps || total != 3 {
			t.Errorf("step %d of %d, want %d of 3", done, total, steps)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.FloorNS <= 0 || r.ColdNS <= 0 || r.HotNS <= 0 || r.FlushNS <= 0 || steps != 3 {
		t.Errorf("%+v after %d steps", r, steps)
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("it leaves %d processors, not %d", after, before)
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Request(ctx, RequestConfig{Rounds: 1000, Slice: time.Millisecond, Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestRequestLoadIsWhatItSays(t *testing.T) {
	l, err := NewRequestLoad(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := l.check(); err == nil {
		t.Error("no hot request was refused, and nothing is said")
	}
	for i := range 1000 {
		l.Floor(i)
		l.Cold(i)
		l.Hot(i)
	}
	if err := l.check(); err != nil {
		t.Error(err)
	}
	if l.passed != 1 || l.refused != 999 {
		t.Errorf("%d hot requests passed, %d were refused", l.passed, l.refused)
	}
	sum := int64(0)
	for _, n := range l.counts {
		sum += n.Load()
	}
	if sum != 1000 || len(l.counts) != requestValues {
		t.Errorf("the floor counted %d of %d keys", sum, len(l.counts))
	}
	if stats := l.counting.Stats(); stats.Dropped.Sum() != 0 {
		t.Errorf("the collector dropped counts: %+v", stats)
	}
	if got := string(sortTwo(nil, "q=1&b=2")); got != "b=2&q=1" {
		t.Errorf("sorted: %q", got)
	}
}
