package aggregator

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// stateChanges feeds a detector one key at a varying rate per second, evenly spread over each 100
// ms. It counts how often the key becomes hot or cools.
func stateChanges(th rules.Threshold, lasts time.Duration, rate func(at time.Duration) float64) int {
	return len(changesOf(th, lasts, rate))
}

func changesOf(th rules.Threshold, lasts time.Duration, rate func(at time.Duration) float64) []published.Change {
	out := newRecorder()
	rule := hotRule("r", 1, time.Second)
	rule.Hot = []rules.Threshold{th}
	d := NewDetector(DetectorConfig{Rules: testRules(rule), Publisher: out, Lag: decode.DefaultLag})
	due := 0.0
	for at := time.Duration(0); at < lasts; at += base.FlushInterval {
		now := noon.Add(at)
		d.Advance(now)
		due += rate(at) * base.FlushInterval.Seconds()
		if n := int64(due); n > 0 {
			due -= float64(n)
			d.Count(decode.Count{Hash: 1, Text: []byte("k"), N: n, When: now})
		}
	}
	return out.changes
}

func TestDetectorIsSteadyAtItsThreshold(t *testing.T) {
	for _, per := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		for _, n := range []int64{1, 7, 20, 200, 3333} {
			rate := rules.Rate{N: n, Per: per}
			got := stateChanges(rules.NewThreshold(rate), 10*time.Minute, func(time.Duration) float64 { return rate.PerSecond() })
			if got < 1 || got > 4 {
				t.Errorf("at exactly %v: %d changes in 10 minutes, want 1 to 4", rate, got)
			}
		}
	}
}

// The cool-down keeps a key hot through a square wave with pauses of one or two seconds, whatever
// the hold.
func TestDetectorDoesNotFlapWithASquareWave(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 2 * time.Second} {
		for _, hold := range []time.Duration{0, 10 * time.Second} {
			for _, n := range []int64{1, 20, 200} {
				th := rules.NewThreshold(rules.Rate{N: n, Per: time.Second})
				th.Hold = hold
				wave := func(at time.Duration) float64 {
					if at%(2*pause) < pause {
						return 2 * float64(n)
					}
					return 0
				}
				if got := stateChanges(th, 10*time.Minute, wave); got != 1 {
					t.Errorf("hot at %d, hold %v, pauses of %v: %d changes, want the key hot once", n, hold, pause, got)
				}
			}
		}
	}
}

// Random variation of a count near the threshold, too, causes few changes.
func TestDetectorIsSteadyByChance(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int64{10, 20, 200, 2000} {
		th := rules.NewThreshold(rules.Rate{N: n, Per: time.Second})
		got := stateChanges(th, 10*time.Minute, func(time.Duration) float64 {
			arrived, mean := 0.0, float64(n)/10
			for at := rnd.ExpFloat64(); at < mean; at += rnd.ExpFloat64() { // Poisson
				arrived++
			}
			return arrived * 10
		})
		if got < 1 || got > 4 {
			t.Errorf("at %d a second by chance: %d changes in 10 minutes, want 1 to 4", n, got)
		}
	}
}

// A burst that has arrived by the time an earlier pane is closed keeps the key hot, without
// further counts.
func TestDetectorDoesNotCoolBeforeABurstThatHasCome(t *testing.T) {
	th := rules.NewThreshold(rules.Rate{N: 200, Per: time.Second})
	th.Hold, th.CoolDown = 0, 0
	changes := changesOf(th, 3*time.Second, func(at time.Duration) float64 {
		if at == 0 || at == 1100*time.Millisecond {
			return 3000
		}
		return 0
	})
	if len(changes) != 2 || len(changes[1].Cool) != 1 {
		t.Fatalf("%+v, want hot at the first burst and cool after the second", changes)
	}
	// The window that holds the second burst ends with the pane of 2 s.
	if cooled := changes[1].Cool[0].Until.Sub(noon); cooled != 2200*time.Millisecond {
		t.Errorf("cool at %v, want 2.2s, when the second burst has left the window", cooled)
	}
}
