package hotkeys

import (
	"maps"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Redis restarts empty and is slow afterwards: it takes 300 ms for each answer, more than half of a
// call's time. New connections still succeed, the set is written, and watchers follow it.
func TestSlowAnswersAfterARestart(t *testing.T) {
	for _, lease := range []time.Duration{0, DefaultLease} {
		name := "without a lease"
		if lease > 0 {
			name = "leased"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
			relay := testenv.NewRelay(t, server.Addr())
			slow := func() string { return strings.Replace(server.URL(), server.Addr(), relay.Addr(), 1) }
			client := clientOf(t, ClientConfig{URL: slow()})
			p := testPublisher(t, client, func(c *PublisherConfig) { c.Timeout, c.Lease = 0, lease })
			p.Publish(hots(hot(text(1), 100, 50)))
			testenv.Running(t, p.Run)
			seen := newRecorder()
			testenv.Running(t, testWatcher(t, clientOf(t, ClientConfig{URL: slow()}), seen).Run)
			seen.await(t, "the first key", has(text(1)))
			want := map[string]int64{text(1): 50}
			for round := range 3 {
				relay.Delay(300 * time.Millisecond)
				server.Restart()
				from := time.Now()
				h := hot(text(2+round), 100, 50)
				p.Publish(hots(h))
				want[h.Text] = 50
				seen.await(t, "what became hot since", func(hot map[string]published.Hot) bool { return maps.Equal(limits(hot), want) })
				t.Logf("in force %v after the restart", time.Since(from).Round(time.Millisecond))
				if seen.everCooled(text(1)) {
					t.Error("a key that is hot was let go of")
				}
				wait(t, func() error {
					if s := p.Stats(); !s.Connected || s.Trouble != "" {
						return &net.OpError{Op: s.Trouble, Err: net.ErrClosed}
					}
					return nil
				})
			}
		})
	}
}
