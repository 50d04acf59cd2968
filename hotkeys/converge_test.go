package hotkeys

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// Two publishers change the set at random while Redis restarts, loses its data, its scripts, its
// stream or its answers. Once that stops, two watchers and Redis come to hold exactly what the
// publishers ought to have published.
func TestWatchersConverge(t *testing.T) {
	t.Parallel()
	seed := testenv.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	owners := []string{"kafka-0", "kafka-1"}
	var publishers []*Publisher
	for _, owner := range owners {
		p := testPublisher(t, testClient(t, server.URL()), func(c *PublisherConfig) { c.Owner, c.Timeout = owner, 0 })
		testenv.Running(t, p.Run)
		publishers = append(publishers, p)
	}
	var seen []*recorder
	for range 2 {
		r := newRecorder()
		testenv.Running(t, testWatcher(t, testClient(t, server.URL()), r).Run)
		seen = append(seen, r)
	}
	want := make(map[string]int64)
	change := func() {
		owner := random.IntN(2)
		var c published.Change
		for _, i := range random.Perm(20)[:1+random.IntN(4)] {
			h := hot(text(2*i+owner), float64(100+i), int64(10+random.IntN(90))) // owners share no key
			if random.IntN(3) == 0 {
				c.Cool = append(c.Cool, h)
				delete(want, h.Text)
			} else {
				c.Hot = append(c.Hot, h)
				want[h.Text] = h.Limit.N
			}
		}
		publishers[owner].Publish(c)
	}
	troubles := map[string]func(){
		"none":       func() {},
		"restart":    server.Restart,
		"flush":      server.Flush,
		"no scripts": func() { admin.ScriptFlush(t.Context()) },
		"no stream":  func() { admin.Del(t.Context(), testLayout.Events) },
		"no version": func() { admin.Del(t.Context(), testLayout.Version) },
		"paused":     func() { server.Pause(); change(); server.Resume() },
		"deaf":       func() { admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub") },
	}
	names := []string{"none", "restart", "flush", "no scripts", "no stream", "no version", "paused", "deaf"}
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for round, name := range names {
		for range 30 {
			change()
		}
		troubles[name]()
		for range 5 {
			change()
		}
		for owner, p := range publishers { // keys seen next were published after the trouble
			h := hot(text(1000+2*round+owner), 50, 10)
			want[h.Text] = h.Limit.N
			p.Publish(hots(h))
		}
		from := time.Now()
		for _, r := range seen {
			r.await(t, name+": convergence", func(hot map[string]published.Hot) bool { return maps.Equal(limits(hot), want) })
		}
		wantInRedis(t, admin, want)
		t.Logf("%s: %d keys agreed on after %v", name, len(want), time.Since(from).Round(time.Millisecond))
	}
	for _, p := range publishers {
		if s := p.Stats(); s.FencedBy != "" {
			t.Errorf("%+v", s)
		}
	}
}
