//go:build !race

package collector

import (
	"testing"
	"time"
)

// (The race detector has pools forget what they hold.)
func TestSigningDoesNotAllocate(t *testing.T) {
	cost := func(key []byte) float64 {
		s := newStatsD(t, StatsDConfig{Sender: discard{}, Key: key})
		counts := []Count{count("terms", "q=1", 3), count("terms", "q=2", 5)}
		return testing.AllocsPerRun(200, func() { s.Send(t.Context(), Flush{Start: time.Unix(1, 0), Now: time.Unix(1, 0), Held: 1}, counts) })
	}
	if with, without := cost(signKey), cost(nil); with > without {
		t.Errorf("a packet that is signed allocates %v times, another %v", with, without)
	}
}
