package hotkeys

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

// link is the connection between a publisher and Redis.
type link struct {
	cut  atomic.Bool // answers are lost
	late [][]any     // scripts in flight that Redis will run late
	keep bool        // scripts that are cut off arrive late
	deaf bool        // scripts that are cut off arrive, and only their answers are lost
}

func (l *link) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *link) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (l *link) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !l.cut.Load() {
			return next(ctx, cmd)
		}
		if l.deaf {
			_ = next(ctx, cmd)
		} else if !l.keep {
			<-ctx.Done()
			return ctx.Err()
		}
		if l.keep && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
			l.late = append(l.late, slices.Clone(cmd.Args()))
		}
		err := errors.New("no answer")
		cmd.SetErr(err)
		return err
	}
}

func linked(tb testing.TB, url string) (redis.UniversalClient, *link) {
	client, l := testClient(tb, url), &link{}
	client.AddHook(l)
	return client, l
}

// Publishers are paused, cut off and killed, and scripts run late, by any schedule. No epoch writes
// after a later one. Once all is quiet, one publisher holds the owner, and Redis has exactly the
// keys that it wants published.
func TestOwningUnderAnySchedule(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Run("leased", func(t *testing.T) { underAnySchedule(t, leased, DefaultLease) })
	t.Run("without a lease", func(t *testing.T) { underAnySchedule(t, unleased, silenceByDefault) })
}

// silenceByDefault is the silence after which a holder without a lease counts as dead.
const silenceByDefault = 2500 * time.Millisecond

// unleased returns a patient publisher without a lease.
func unleased(tb testing.TB, client redis.UniversalClient) *Publisher {
	p := testPublisher(tb, client, nil)
	if p.silence != silenceByDefault {
		tb.Fatalf("silent after %v, want %v", p.silence, silenceByDefault)
	}
	return p
}

func underAnySchedule(t *testing.T, leased func(testing.TB, redis.UniversalClient) *Publisher, silence time.Duration) {
	clock := newLeaseClock(t)
	url := "redis://" + clock.Addr()
	admin := testClient(t, url)
	clients, links := make([]redis.UniversalClient, 3), make([]*link, 3)
	for i := range clients {
		clients[i], links[i] = linked(t, url)
		links[i].keep = true
	}
	ctx := context.Background()
	must(t, leased(t, admin).resume(ctx)) // the scripts are known from here on
	rapid.Check(t, func(r *rapid.T) {
		clock.FlushAll()
		n := rapid.IntRange(2, 3).Draw(r, "publishers")
		publishers := make([]*Publisher, n)
		for i := range publishers {
			publishers[i] = leased(t, clients[i])
			links[i].cut.Store(false)
			links[i].late = nil
		}
		var mistaken int
		step := func(p *Publisher, f func(context.Context) error) {
			if err := f(ctx); err != nil {
				p.reclaim = true // as Run does
				mistaken++
			}
		}
		want := map[string]int64{}
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			i := rapid.IntRange(0, n-1).Draw(r, "publisher")
			p, l := publishers[i], links[i]
			switch rapid.SampledFrom([]string{"hold", "hold", "settle", "renew", "prune", "key", "key", "time", "time", "cut", "heal", "late", "late", "kill", "stop", "flush"}).Draw(r, "step") {
			case "hold":
				step(p, p.keepClaim)
			case "settle":
				step(p, p.settle)
			case "renew":
				step(p, p.resume)
			case "prune":
				step(p, p.prune)
			case "key": // all of them find it
				h := hot(text(rapid.IntRange(0, 4).Draw(r, "key")), 100, int64(rapid.IntRange(1, 3).Draw(r, "limit")))
				if delete(want, h.Text); rapid.Bool().Draw(r, "hot") {
					want[h.Text] = h.Limit.N
				}
				for _, q := range publishers {
					if _, ok := want[h.Text]; ok {
						q.Publish(hots(h))
					} else {
						q.Publish(cools(h))
					}
				}
			case "time":
				clock.forward(time.Duration(rapid.SampledFrom([]int{1, 300, 800, 1600, 2600}).Draw(r, "ms")) * time.Millisecond)
			case "cut":
				l.cut.Store(true)
			case "heal":
				l.cut.Store(false)
			case "late":
				for _, args := range l.late {
					admin.Do(ctx, args...) // the answer is lost
				}
				l.late = nil
			case "kill":
				publishers[i] = leased(t, clients[i])
				for text, limit := range want { // the detector finds the hot keys again
					publishers[i].Publish(hots(hot(text, 100, limit)))
				}
			case "flush": // Redis loses all
				clock.FlushAll()
			case "stop":
				p.finish(ctx)
				p.standby = true // it ends here, and a new one begins
			}
		}
		for i, l := range links[:n] {
			l.cut.Store(false)
			step(publishers[i], publishers[i].keepClaim)
		}
		clock.forward(silence)
		for range 2 {
			for _, p := range publishers {
				must(t, p.keepClaim(ctx))
				must(t, p.resume(ctx))
			}
		}
		told := story(r, admin)
		holders := 0
		for _, p := range publishers {
			if !p.standby {
				holders++
			}
		}
		// A key that a new process never knew fades.
		clock.forward(15 * time.Second)
		for _, p := range publishers {
			must(t, p.keepClaim(ctx))
			must(t, p.resume(ctx))
			must(t, p.prune(ctx))
		}
		story(r, admin)
		if got := inRedis(t, admin); holders != 1 || !maps.Equal(got, want) {
			r.Fatalf("%d holders; published %v, want %v; %d calls failed; the stream: %+v", holders, got, want, mistaken, told)
		}
	})
}
