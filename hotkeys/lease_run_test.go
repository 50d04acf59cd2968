package hotkeys

import (
	"slices"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// pair is two running publishers of one owner: a holder and a standby.
type pair struct {
	t       *testing.T
	holder  *Publisher
	standby *Publisher
	link    *link  // the holder's
	stop    func() // ends the holder
}

func newPair(t *testing.T, url string, lease time.Duration) *pair {
	t.Helper()
	p := &pair{t: t}
	edit := func(c *PublisherConfig) { c.Lease, c.Timeout = lease, 0 }
	client, l := linked(t, url)
	p.holder, p.link = testPublisher(t, client, edit), l
	p.holder.Publish(hots(hot(text(1), 100, 50)))
	p.stop = testenv.Running(t, p.holder.Run)
	p.await(patience, "the first holds the owner", func() bool { return p.holder.Stats().Keys == 1 })
	p.standby = testPublisher(t, testClient(t, url), edit)
	p.standby.Publish(hots(hot(text(1), 100, 50)))
	testenv.Running(t, p.standby.Run)
	p.await(patience, "the second stands by", func() bool { return p.standby.Stats().Standby })
	return p
}

// await polls, since the work of other goroutines in Redis's time causes no event.
func (p *pair) await(limit time.Duration, what string, ok func() bool) time.Duration {
	p.t.Helper()
	return testenv.Within(p.t, limit, what, ok, func() any { return []any{p.holder.Stats(), p.standby.Stats()} })
}

// tookOver reports whether the standby has taken over and published.
func (p *pair) tookOver() bool { s := p.standby.Stats(); return !s.Standby && s.Keys == 2 }

// A holder that is cut off loses the owner. Changes that it would have written in between are never
// written.
func TestLeaseIsTakenOver(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	p := newPair(t, server.URL(), DefaultLease)
	p.link.cut.Store(true)
	p.standby.Publish(hots(hot(text(2), 100, 50)))
	p.holder.Publish(hots(hot("old", 100, 50)))
	p.holder.Publish(cools(hot(text(1), 100, 50)))
	t.Logf("taken over after %v", p.await(patience, "the standby takes over", p.tookOver))
	p.link.cut.Store(false)
	p.await(patience, "the one that was cut off stands by", func() bool { return p.holder.Stats().Standby })
	if s := p.holder.Stats(); s.FencedBy != "" || s.Takeovers != 1 {
		t.Errorf("the one that was cut off: %+v", s)
	}
	p.await(patience, "it is connected", func() bool { return p.holder.Stats().Connected })
	wantInRedis(t, admin, map[string]int64{text(1): 50, text(2): 50})
	for _, w := range story(t, admin) {
		if len(w.cool) > 0 || slices.Contains(w.hot, "old") {
			t.Errorf("the stream has %+v", w)
		}
	}
}

// A holder that stops releases the lease, so that the standby need not wait for its end.
func TestLeaseIsLetGo(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	const lease = 6 * time.Second
	p := newPair(t, server.URL(), lease)
	p.standby.Publish(hots(hot(text(2), 100, 50)))
	renewed := p.holder.Stats().Renewals // just after one the lease has longest to go
	p.await(patience, "a renewal", func() bool { return p.holder.Stats().Renewals > renewed })
	p.stop()
	if took := p.await(patience, "the standby takes over", p.tookOver); took > lease*3/4 {
		t.Errorf("taken over after %v, want about a quarter of %v at most", took, lease)
	}
	story(t, testClient(t, server.URL()))
}

// Redis restarts empty, and hangs. Afterwards one of the two publishes, and not both.
func TestLeaseOutlivesRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	p := newPair(t, server.URL(), DefaultLease)
	for name, trouble := range map[string]func(){
		"restart": server.Restart,
		"hang":    func() { server.Pause(); time.Sleep(2 * DefaultLease); server.Resume() },
	} {
		trouble()
		p.await(patience, name+": both are connected and one holds the owner", func() bool {
			one, other := p.holder.Stats(), p.standby.Stats()
			return one.Connected && other.Connected && one.Standby != other.Standby && one.Keys+other.Keys == 1 &&
				admin.ZCard(t.Context(), testLayout.Hot).Val() == 1
		})
		wantInRedis(t, admin, map[string]int64{text(1): 50})
		story(t, admin)
	}
}
