//go:build !race

package statsdsink

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
)

// With the race detector pools lose their content, so the test would fail there.
func TestSigningDoesNotAllocate(t *testing.T) {
	cost := func(key []byte) float64 {
		s := newSink(t, Config{Sender: discard{}, Key: key})
		counts := []collector.Count{count("terms", "q=1", 3), count("terms", "q=2", 5)}
		return testing.AllocsPerRun(200, func() {
			s.Send(t.Context(), collector.Flush{Start: time.Unix(1, 0), Now: time.Unix(1, 0), Held: 1}, counts)
		})
	}
	if with, without := cost(signKey), cost(nil); with > without {
		t.Errorf("a packet that is signed allocates %v times, another %v", with, without)
	}
}
