package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
)

// leaseClock is a miniredis whose clock only a test advances.
type leaseClock struct {
	*miniredis.Miniredis
	now time.Time
}

func newLeaseClock(t *testing.T) *leaseClock {
	c := &leaseClock{miniredis.RunT(t), time.UnixMilli(1_732_172_445_000)}
	c.SetTime(c.now)
	return c
}

func (c *leaseClock) forward(d time.Duration) {
	c.now = c.now.Add(d)
	c.SetTime(c.now)
}

// leased returns a publisher with a lease. Its calls have a long timeout, since they take no time
// on Redis's clock, by which leases are kept.
func leased(tb testing.TB, client redis.UniversalClient) *Publisher {
	tb.Helper()
	p := testPublisher(tb, client, func(c *PublisherConfig) { c.Lease, c.Timeout = DefaultLease, 0 })
	p.cfg.Timeout = patience
	return p
}

// written is one change in the stream: its epoch, and the texts of the keys that became hot and
// cool.
type written struct {
	epoch     int64
	hot, cool []string
}

// story reads the stream, and checks that no epoch wrote after a later one.
func story(tb fataler, client redis.UniversalClient) []written {
	tb.Helper()
	var all []written
	last := int64(0)
	for _, e := range client.XRange(context.Background(), testLayout.Events, "-", "+").Val() {
		epoch, err := strconv.ParseInt(e.Values["epoch"].(string), 10, 64)
		c, err2 := published.ParsePush([]byte(e.Values["change"].(string)))
		if err := errors.Join(err, err2); err != nil || e.Values["owner"] != "statsd" {
			tb.Fatalf("event %v: %v", e.Values, err)
		}
		if epoch < last {
			tb.Fatalf("epoch %d wrote after epoch %d", epoch, last)
		}
		last = epoch
		w := written{epoch: epoch}
		for _, h := range c.Hot {
			w.hot = append(w.hot, h.Text)
		}
		for _, h := range c.Cool {
			w.cool = append(w.cool, h.Text)
		}
		slices.Sort(w.hot)
		slices.Sort(w.cool)
		all = append(all, w)
	}
	return all
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// A lease ends on Redis's clock and no other. Until then others stand by. Once another has the
// lease, its former holder stands by.
func TestLeaseStepByStep(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	a, b := leased(t, client), leased(t, client)
	a.Publish(hots(hot(text(1), 100, 50)))
	b.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
	must(t, a.resume(ctx))
	must(t, b.resume(ctx))
	if s := a.Stats(); s.Standby || s.Takeovers != 1 || s.Keys != 1 || !s.Connected {
		t.Fatalf("the holder: %+v", s)
	}
	if s := b.Stats(); !s.Standby || s.FencedBy != "" || s.Takeovers != 0 || s.Keys != 0 || !s.Connected {
		t.Fatalf("the standby: %+v", s)
	}
	if until := client.HGet(ctx, testLayout.Owners, "statsd:until").Val(); until != fmt.Sprint(clock.now.Add(DefaultLease).UnixMilli()) {
		t.Errorf("the lease lasts until %s", until)
	}
	// Each call that passes the fence extends the lease.
	for name, step := range map[string]func(context.Context) error{
		"lease": a.keepClaim, "renew": a.renew, "prune": a.prune, "trim": a.trim,
		"change": func(ctx context.Context) error { a.Publish(hots(hot(text(1), 100, 60))); return a.settle(ctx) },
	} {
		clock.forward(DefaultLease - time.Millisecond)
		must(t, step(ctx))
		clock.forward(DefaultLease - time.Millisecond)
		must(t, b.keepClaim(ctx))
		if !b.Stats().Standby || a.Stats().Standby {
			t.Fatalf("%s did not extend the lease", name)
		}
		if got, want := b.untilClaim(), minStandby; got != want {
			t.Errorf("the standby waits for %v, want %v: the lease is nearly over", got, want)
		}
	}
	clock.forward(time.Millisecond)
	must(t, b.keepClaim(ctx))
	if s := b.Stats(); s.Standby || s.Takeovers != 1 || s.Keys != 2 || b.epoch != a.epoch+1 {
		t.Fatalf("the lease is over: %+v, epoch %d after %d", s, b.epoch, a.epoch)
	}
	before := version(t, client)
	a.Publish(hots(hot(text(3), 100, 50)))
	for name, step := range map[string]func(context.Context) error{
		"lease": a.keepClaim, "renew": a.renew, "prune": a.prune, "trim": a.trim, "change": a.settle, "tell": a.writeSuspects,
		"rewrite": func(ctx context.Context) error { a.rewrite = true; return a.settle(ctx) },
		"claim":   func(ctx context.Context) error { a.reclaim = true; return a.settle(ctx) },
	} {
		a.standby, a.version, a.reclaim = false, b.version, false // as if it did not know yet
		must(t, step(ctx))
		if s := a.Stats(); !s.Standby || !a.standby || s.FencedBy != "" || s.Keys != 0 {
			t.Errorf("%s of the one that lost the lease: %+v", name, s)
		}
		if now := version(t, client); now != before {
			t.Errorf("%s of the one that lost the lease: version %s became %s", name, before, now)
		}
	}
	// A released lease is free at once.
	b.finish(ctx)
	must(t, a.keepClaim(ctx))
	if s := a.Stats(); s.Standby || s.Takeovers != 2 || a.epoch != b.epoch+1 {
		t.Errorf("after it was let go of: %+v, epoch %d after %d", s, a.epoch, b.epoch)
	}
	// A publisher whose call failed claims again. If another had the lease in between and released
	// it, this is a takeover like any other.
	must(t, a.settle(ctx))
	clock.forward(DefaultLease)
	b = leased(t, client)
	b.Publish(hots(hot(text(3), 100, 50)))
	must(t, b.resume(ctx))
	b.Publish(cools(hot(text(3), 100, 50)))
	b.finish(ctx)
	wantInRedis(t, client, map[string]int64{text(1): 60, text(2): 50})
	a.reclaim = true
	must(t, a.settle(ctx))
	if s := a.Stats(); b.Stats().Takeovers != 1 || s.Takeovers != 3 || s.Keys != 2 || !slices.Equal(slices.Sorted(maps.Keys(inRedis(t, client))), []string{text(1), text(2), text(3)}) {
		t.Errorf("after another had it: %+v, published %v", s, inRedis(t, client))
	}
	story(t, client)
}

// A holder that reaches Redis but gets no answers does not keep the owner.
func TestDeafHolderLosesTheLease(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client, l := linked(t, "redis://"+clock.Addr())
	a, b := leased(t, client), leased(t, testClient(t, "redis://"+clock.Addr()))
	must(t, a.resume(ctx))
	must(t, b.resume(ctx))
	l.deaf = true
	l.cut.Store(true)
	for passed := time.Duration(0); b.Stats().Standby; passed += 300 * time.Millisecond {
		if passed > DefaultLease+300*time.Millisecond {
			t.Fatalf("the lease still lasts after %v", passed)
		}
		if err := a.resume(ctx); err == nil {
			t.Fatal("an answer came")
		}
		a.reclaim = true // as Run does
		must(t, b.keepClaim(ctx))
		clock.forward(300 * time.Millisecond)
	}
	l.cut.Store(false)
	must(t, a.resume(ctx))
	if !a.Stats().Standby {
		t.Errorf("both hold the owner: %+v, %+v", a.Stats(), b.Stats())
	}
}

// A clock that is set back leaves a lease whose end is far ahead. No publisher waits for it.
func TestLeaseWhenTheClockIsSetBack(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	a, b := leased(t, client), leased(t, client)
	must(t, a.resume(ctx))
	must(t, b.resume(ctx))
	clock.forward(-time.Hour)
	must(t, a.keepClaim(ctx)) // the holder lives: its lease starts again
	must(t, b.keepClaim(ctx))
	if !b.Stats().Standby {
		t.Error("a holder that lives was replaced")
	}
	clock.forward(-time.Hour)
	must(t, b.keepClaim(ctx))
	if b.Stats().Standby {
		t.Error("a dead holder is waited for")
	}
}

// A publisher that takes over publishes only the differences. Keys that both found hot stay as they
// were published.
func TestTakeOverTellsTheDifference(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	a, b := leased(t, client), leased(t, client)
	later := func(h published.Hot) published.Hot { h.Since = h.Since.Add(30 * time.Millisecond); return h }
	both, cooled, strange, fresh := hot("both", 100, 50), hot("cooled", 100, 50), hot("strange", 100, 50), hot("fresh", 100, 50)
	a.Publish(hots(both, cooled, strange))
	a.Suspects(0, []published.Hot{hot("suspect of a", 5, 1)})
	must(t, a.resume(ctx))
	b.Publish(hots(later(both), later(cooled), fresh))
	b.Publish(cools(cooled))
	b.Suspects(0, []published.Hot{hot("suspect of b", 5, 1)})
	must(t, b.resume(ctx))
	if got := client.ZRange(ctx, testLayout.Suspects, 0, -1).Val(); !slices.Equal(got, []string{"search-terms suspect of a"}) {
		t.Errorf("suspects while b stands by: %q", got)
	}
	clock.forward(DefaultLease)
	must(t, b.keepClaim(ctx))
	wantInRedis(t, client, map[string]int64{"both": 50, "strange": 50, "fresh": 50})
	if got := client.ZRange(ctx, testLayout.Suspects, 0, -1).Val(); !slices.Equal(got, []string{"search-terms suspect of b"}) {
		t.Errorf("suspects after the take-over: %q", got)
	}
	told := story(t, client)
	if last := told[len(told)-1]; len(told) != 2 || last.epoch != 2 || !slices.Equal(last.hot, []string{"fresh"}) || !slices.Equal(last.cool, []string{"cooled"}) {
		t.Errorf("the stream: %+v", told)
	}
	list, err := List(ctx, client, testNamespace)
	must(t, err)
	for _, h := range list {
		if h.Text == "both" && !h.Since.Equal(both.Since) {
			t.Errorf("since %v, want as it was published: %v", h.Since, both.Since)
		}
	}
	// A key that was never hot at b ends with its time to live.
	clock.forward(15 * time.Second)
	must(t, b.renew(ctx))
	must(t, b.prune(ctx))
	wantInRedis(t, client, map[string]int64{"both": 50, "fresh": 50})
}

// A publisher that takes over or adopts keeps the keys that have a place. They lose it only to keys
// that are more than twice as hot.
func TestPlacesOutliveTheirHolder(t *testing.T) {
	ctx := context.Background()
	clock := newLeaseClock(t)
	client := testClient(t, "redis://"+clock.Addr())
	a, b := leased(t, client), leased(t, client)
	a.desired, b.desired = newDesired(2, nil), newDesired(2, nil)
	one, two, hotter, hottest := hot("one", 100, 50), hot("two", 110, 50), hot("hotter", 190, 50), hot("hottest", 500, 50)
	a.Publish(hots(one, two))
	must(t, a.resume(ctx))
	b.Publish(hots(hotter))
	b.Refresh(0, []published.Hot{one, two, hotter})
	b.Stats() // gives out places, as it otherwise would
	must(t, b.resume(ctx))
	clock.forward(DefaultLease)
	must(t, b.keepClaim(ctx))
	wantInRedis(t, client, map[string]int64{"one": 50, "two": 50})

	c := testPublisher(t, client, func(c *PublisherConfig) { c.Cap = 2 })
	_, _, err := c.Adopt(ctx)
	must(t, err)
	c.Publish(hots(hotter, hottest))
	must(t, c.renew(ctx))
	wantInRedis(t, client, map[string]int64{"two": 50, "hottest": 50})
}

// Cooled keys are remembered for a takeover, at most twice as many as the cap.
func TestCooledIsBounded(t *testing.T) {
	p := testPublisher(t, testClient(t, "redis://127.0.0.1:1"), func(c *PublisherConfig) { c.Lease, c.Timeout, c.Cap = DefaultLease, 0, 10 })
	for i := range 100 {
		p.Publish(hots(hot(text(i), 1, 1)))
		p.Publish(cools(hot(text(i), 1, 1)))
		if n := len(p.desired.cooled); n == 0 || n > 20 {
			t.Fatalf("%d noted", n)
		}
	}
}

func TestLeaseConfig(t *testing.T) {
	client := testClient(t, "redis://127.0.0.1:1")
	for _, lease := range []time.Duration{-time.Second, time.Millisecond, 999 * time.Millisecond, 61 * time.Second} {
		if _, err := NewPublisher(client, PublisherConfig{Namespace: "a", Lease: lease}); err == nil || !strings.Contains(err.Error(), "Lease") {
			t.Errorf("%v: err = %v, want one that names the field", lease, err)
		}
	}
	p, err := NewPublisher(client, PublisherConfig{Namespace: "a", Lease: DefaultLease})
	must(t, err)
	if _, _, err := p.Adopt(context.Background()); !errors.Is(err, errAdoptedLeased) {
		t.Errorf("Adopt with a lease: %v", err)
	}
}
