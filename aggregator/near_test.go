package aggregator

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
)

// summaries keeps the last summary that it receives.
type summaries struct {
	*recorder
	last published.Summary
}

func (s *summaries) Summary(_ int, sum published.Summary) { s.last = sum }

// The keys nearest to a threshold are named with the part that they have reached, although no key has
// a text in the windows. Hot keys are not among them, and neither are keys that are no longer counted.
func TestNear(t *testing.T) {
	to := &summaries{recorder: newRecorder()}
	d := NewDetector(DetectorConfig{Rules: testRules(hotRule("r", 200, time.Second)), Publisher: to, Start: noon})
	now := noon
	second := func(count func(q int) int64) {
		for step := range 10 {
			for q := range 300 {
				if n := count(q); n > 0 {
					text := fmt.Sprint("GET /search?q=", q)
					d.Count(decode.Count{Hash: testHash(text), Text: []byte(text), N: n, When: now.Add(time.Duration(step) * 100 * time.Millisecond)})
				}
			}
			d.Advance(now.Add(time.Duration(step+1) * 100 * time.Millisecond))
		}
		now = now.Add(time.Second)
	}
	crowd := func(q int) int64 {
		switch {
		case q == 299:
			return 30 // hot
		case q >= 280:
			return int64(q-280) + 1 // 10 to 190 a second
		}
		return 0
	}
	for range 4 {
		second(crowd)
	}
	if n := len(to.last.Near); n != 19 {
		t.Fatalf("%d keys: %+v", n, to.last.Near)
	}
	for i, h := range to.last.Near {
		if want := fmt.Sprint("GET /search?q=", 298-i); h.Text != want || math.Abs(h.Ratio-float64(19-i)/20) > 0.051 || h.Cause.IsZero() || h.Rate == 0 {
			t.Errorf("place %d: %+v, want %s", i, h, want)
		}
	}
	if len(to.last.Traffic) != 1 || math.Abs(to.last.Traffic[0].Rate-2200) > 250 || to.last.Traffic[0].Keys != 20 || to.last.Traffic[0].Rule != "r" {
		t.Errorf("%+v", to.last.Traffic)
	}
	// Of many keys those with most have a place, whichever came first. The hot key is still held.
	for range 4 {
		second(func(q int) int64 { return 1 + int64(q/20) + int64(q/299)*3 })
	}
	if len(to.last.Near) != published.MaxNear {
		t.Errorf("%d keys", len(to.last.Near))
	}
	for _, h := range to.last.Near {
		if h.Low < 100 || h.Text == "GET /search?q=299" {
			t.Errorf("%+v", h)
		}
	}
	for range 4 {
		second(func(int) int64 { return 0 })
	}
	if len(to.last.Near) != 0 || to.last.Traffic[0].Rate != 0 {
		t.Errorf("%+v", to.last)
	}
}
