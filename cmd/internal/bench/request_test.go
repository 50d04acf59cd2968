package bench

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/yardstick"
)

// testValues is small, so that the structures that count the values are quickly warm.
const testValues = 1000

func TestRequest(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	steps, last := 0, 0
	r, err := Request(t.Context(), RequestConfig{values: testValues, Rounds: 2, Slice: 10 * time.Millisecond, Progress: func(done, total int) {
		last = total
		if steps++; done != steps || total < 10 {
			t.Errorf("step %d of %d, want %d of more than 10", done, total, steps)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if r.FloorNS <= 0 || r.ColdNS <= 0 || r.HotNS <= 0 || r.FlushNS <= 0 || len(r.Cases)+len(goalCases) != steps || steps != last {
		t.Errorf("%+v after %d steps", r, steps)
	}
	names := make(map[string]bool)
	for _, c := range r.Cases {
		if c.NS <= 0 || c.Floors <= 0 || c.What == "" || names[c.Name] {
			t.Errorf("%+v", c)
		}
		names[c.Name] = true
	}
	for _, name := range goalCases {
		if r.Case(name).NS <= 0 {
			t.Errorf("there is no case %s: %v", name, names)
		}
	}
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("it leaves %d processors, not %d", after, before)
	}
}

func TestRequestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Request(ctx, RequestConfig{values: testValues, Rounds: 1000, Slice: time.Millisecond, Progress: func(int, int) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestRequestLoadIsWhatItSays(t *testing.T) {
	l, err := newRequestLoad(t.Context(), testValues)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range 1000 {
		l.floor(i)
		for _, c := range l.cases {
			c.step(i)
		}
	}
	if err := l.check(); err != nil {
		t.Error(err)
	}
	sum := int64(0)
	for _, n := range l.counts {
		sum += n.Load()
	}
	if sum != 1000 || len(l.counts) != testValues {
		t.Errorf("the floor counted %d of %d keys", sum, len(l.counts))
	}
	if got := string(yardstick.SortTwo(nil, "q=1&b=2")); got != "b=2&q=1" {
		t.Errorf("sorted: %q", got)
	}
	// A case that fails its own check gives no figure.
	for i := range l.cases {
		was := l.cases[i].wrong
		l.cases[i].wrong = func() int { return 1 }
		if l.check() == nil {
			t.Errorf("%s went wrong, and nothing is said", l.cases[i].name)
		}
		l.cases[i].wrong = was
	}
}
