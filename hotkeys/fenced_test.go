package hotkeys

import (
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A process that was started by mistake fences the publisher. The publisher takes over again when
// that process ends or dies. While both live, nothing changes hands.
func TestFencedTakesOverAgain(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	for _, end := range []string{"ends", "dies"} {
		t.Run(end, func(t *testing.T) {
			server := testenv.Redis(t)
			admin := testClient(t, server.URL())
			var first, second *Publisher
			await := func(what string, ok func() bool) time.Duration {
				t.Helper()
				return testenv.Within(t, patience, what, ok, func() any { return []any{first.Stats(), second.Stats()} })
			}
			log := new(testenv.LogBuffer)
			first = testPublisher(t, testClient(t, server.URL()), func(c *PublisherConfig) { c.Logger, c.Timeout = loggerTo(log), 0 })
			first.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
			testenv.Running(t, first.Run)
			await("the first publishes", func() bool { return first.Stats().Keys == 2 })
			client, l := linked(t, server.URL())
			second = testPublisher(t, client, func(c *PublisherConfig) { c.Timeout = 0 })
			second.Publish(hots(hot(text(1), 100, 50), hot("mistaken", 100, 50)))
			stop := testenv.Running(t, second.Run)
			await("the first is fenced", func() bool { return first.Stats().FencedBy != "" })
			if s := first.Stats(); !strings.Contains(s.FencedBy, second.holder) || !s.Standby || s.Keys != 0 || !s.Connected {
				t.Errorf("the first: %+v, want it fenced by %s", s, second.holder)
			}
			epoch := admin.HGet(t.Context(), testLayout.Owners, "statsd").Val()
			time.Sleep(2 * silenceByDefault) // both live: nothing happens, even after more than the allowed silence
			if now := admin.HGet(t.Context(), testLayout.Owners, "statsd").Val(); now != epoch || second.Stats().FencedBy != "" || first.Stats().FencedBy == "" {
				t.Errorf("epoch %s became %s; the second: %+v", epoch, now, second.Stats())
			}
			first.Publish(cools(hot(text(2), 100, 50)))
			first.Publish(hots(hot(text(3), 100, 50)))
			if end == "dies" {
				l.cut.Store(true)
			} else {
				stop()
			}
			took := await("the first publishes again", func() bool {
				s := first.Stats()
				return s.FencedBy == "" && !s.Standby && s.Connected && s.Keys == 2 && s.Takeovers == 1
			})
			t.Logf("taken over after %v", took)
			await("all is published", func() bool {
				got, err := readInRedis(t.Context(), admin)
				return err == nil && len(got) == 3 && got[text(1)] == 50 && got[text(3)] == 50 // an entry that the first never knew fades
			})
			if end == "dies" { // it resumes and stands by
				l.cut.Store(false)
				await("the second is fenced", func() bool { return strings.Contains(second.Stats().FencedBy, first.holder) })
			}
			story(t, admin)
			if said := log.Lines(); len(said) > 8 {
				t.Errorf("%d lines:\n%s", len(said), strings.Join(said, "\n"))
			}
		})
	}
}

// A holder of an earlier version, which writes no sign of life to Redis, counts as alive while
// there is a heartbeat.
func TestFencedByAnEarlierVersion(t *testing.T) {
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	ctx := t.Context()
	p := unleased(t, client)
	p.Publish(hots(hot(text(1), 100, 50)))
	must(t, p.resume(ctx))
	must(t, client.HSet(ctx, testLayout.Owners, "statsd", 2, "statsd:holder", "6f1c0a2b9d3e4f58").Err())
	must(t, client.HDel(ctx, testLayout.Owners, "statsd:until").Err())
	must(t, p.renew(ctx))
	if by := p.Stats().FencedBy; !strings.Contains(by, "6f1c0a2b9d3e4f58") {
		t.Fatalf("fenced by %q", by)
	}
	for range 5 { // it renews
		clock.forward(time.Second)
		must(t, client.Set(ctx, testLayout.Beat, "{}", 5*time.Second).Err())
		must(t, p.keepClaim(ctx))
		if p.Stats().FencedBy == "" {
			t.Fatal("taken from one that lives")
		}
	}
	must(t, client.Del(ctx, testLayout.Beat).Err())
	must(t, p.keepClaim(ctx))
	if s := p.Stats(); s.FencedBy != "" || s.Keys != 1 || s.Takeovers != 1 {
		t.Errorf("after its heart has stopped: %+v", s)
	}
}
