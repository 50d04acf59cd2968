package hotkeys

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// seekers are clients that write until a write fails, and then until a write succeeds again.
type seekers struct {
	t       *testing.T
	writing sync.WaitGroup
	found   []time.Time // when each wrote again; zero if it never did
}

// seek starts n clients. Each asks nodes and sentinels in its own order.
func seek(t *testing.T, n int, config ClientConfig) *seekers {
	s := &seekers{t: t, found: make([]time.Time, n)}
	for i := range s.found {
		client := clientOf(t, config)
		must(t, s.write(client))
		s.writing.Go(func() {
			for s.write(client) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			for failed := time.Now(); time.Since(failed) < 15*time.Second; time.Sleep(10 * time.Millisecond) {
				if s.write(client) == nil {
					s.found[i] = time.Now()
					return
				}
			}
		})
	}
	return s
}

func (s *seekers) write(client redis.UniversalClient) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 200*time.Millisecond)
	defer cancel()
	return client.Set(ctx, testLayout.Hot, "written", 0).Err()
}

// within fails the test if a client took longer than most after the promotion.
func (s *seekers) within(most time.Duration, promoted time.Time) {
	s.t.Helper()
	s.writing.Wait()
	for i, at := range s.found {
		if late := at.Sub(promoted); at.IsZero() || late > most {
			s.t.Errorf("client %d wrote again after %v , at %v", i, late.Round(time.Millisecond), at)
		}
	}
}

// A master that hangs, and that another has replaced, may be asked for the map of the cluster like
// any node. Clients still find the new master soon.
func TestClientFindsTheSuccessorOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisCluster(t)
	former := set.Master(testLayout.Hot)
	clients := seek(t, 16, ClientConfig{URL: set.URL()})
	former.Pause()
	set.AwaitFailover(testLayout.Hot, former)
	clients.within(2*time.Second, time.Now())
}

// A sentinel that hangs is not asked again, so a client that used it finds a new primary through
// another one.
func TestClientLeavesASentinelThatHangs(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	set := testenv.RedisSentinel(t)
	clients := seek(t, 12, ClientConfig{URL: set.URL()})
	former := set.Primary()
	set.KillPrimary()
	set.Sentinels()[0].Pause()
	set.AwaitFailover(former)
	clients.within(3*time.Second, time.Now())
}
