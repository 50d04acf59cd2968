package live

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/hotkeytest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// heatingFleet is an aggregator that publishes and a standby, on a real Redis, with a reader of
// events.
type heatingFleet struct {
	t       *testing.T
	client  redis.UniversalClient
	events  <-chan Event
	hot     map[int]published.Hot // by key
	began   time.Time             // the last heating
	leader  *aggregatorProcess
	standby *aggregatorProcess
}

// aggregatorProcess is a running publisher.
type aggregatorProcess struct {
	*hotkeys.Publisher
	stop func()
}

func (h *heatingFleet) start() *aggregatorProcess {
	h.t.Helper()
	p, err := hotkeys.NewPublisher(h.client, hotkeys.PublisherConfig{Namespace: "shop", Timeout: time.Second, BeatTTL: time.Minute, Lease: 2 * time.Second})
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = p.Run(ctx) }()
	process := &aggregatorProcess{p, func() { cancel(); <-done }}
	h.t.Cleanup(process.stop)
	return process
}

// publish passes a detector's change to both, with a time of its own for each.
func (h *heatingFleet) publish(change published.Change) {
	h.leader.Publish(change)
	later := published.Change{Cool: change.Cool}
	for _, k := range change.Hot {
		k.Since = k.Since.Add(300 * time.Millisecond)
		later.Hot = append(later.Hot, k)
	}
	h.standby.Publish(later)
}

// found passes all hot keys to a process that has just started, as found now.
func (h *heatingFleet) found(p *aggregatorProcess) {
	for _, k := range h.hot {
		k.Since = time.Now()
		p.Publish(hotkeytest.Hots(k))
	}
}

// settle waits until Redis has exactly the hot keys, with their limits.
func (h *heatingFleet) settle(what string) {
	h.t.Helper()
	eventually(h.t, "after "+what+" the keys are published", func() bool {
		listed, err := hotkeys.List(h.t.Context(), h.client, "shop")
		if err != nil || len(listed) != len(h.hot) {
			return false
		}
		for _, got := range listed {
			want := published.Hot{}
			for _, k := range h.hot {
				if k.Key == got.Key {
					want = k
				}
			}
			if got.Limit != want.Limit || got.Mode != want.Mode || got.Spared != want.Spared {
				return false
			}
		}
		return true
	})
}

// step makes one change and names it. Only the beginning and the end of a heating are reported.
func (h *heatingFleet) step(kind, i int) string {
	k, isHot := h.hot[i]
	switch {
	case kind <= 1 && !isHot:
		k = hot(i, 212)
		h.began = h.began.Add(time.Minute)
		k.Since = h.began
		h.hot[i] = k
		h.publish(hotkeytest.Hots(k))
		h.expect(Hot, k)
		return "a heating"
	case kind == 0:
		delete(h.hot, i)
		h.publish(hotkeytest.Cools(k))
		h.expect(Cool, k)
		return "a cooling"
	case kind <= 3: // a reload, or a control
		k.Limit.N++
		k.Cause.Rate.N++
		if kind == 3 {
			k.Mode = map[rules.Mode]rules.Mode{rules.ModeLimit: rules.ModeShadow, rules.ModeShadow: rules.ModeLimit}[k.Mode]
		}
		if isHot {
			h.hot[i] = k
			h.publish(hotkeytest.Hots(k))
		}
		return "other terms"
	case kind == 4: // usual traffic, which is not limited
		k.Usual, k.Spared = !k.Spared, !k.Spared
		if isHot {
			h.hot[i] = k
			h.publish(hotkeytest.Hots(k))
		}
		return "a spared key"
	case kind == 5: // the standby takes over; the other restarts
		eventually(h.t, "one publishes and one stands by", func() bool { // after a loss the roles may have changed
			if h.leader.Stats().Standby {
				h.leader, h.standby = h.standby, h.leader
			}
			return h.leader.Publishes() && h.standby.Stats().Standby
		})
		h.leader.stop()
		h.leader = h.standby
		eventually(h.t, "the standby takes over", h.leader.Publishes)
		h.standby = h.start()
		h.found(h.standby)
		return "a takeover"
	case kind == 6: // both restart, and find the hot keys again
		h.leader.stop()
		h.standby.stop()
		h.leader = h.start()
		eventually(h.t, "the first claims", h.leader.Publishes)
		h.standby = h.start()
		h.found(h.leader)
		h.found(h.standby)
		return "a restart"
	}
	if err := h.client.Del(h.t.Context(), h.keys()...).Err(); err != nil {
		h.t.Fatal(err)
	}
	return "a loss of Redis's state"
}

func (h *heatingFleet) keys() []string {
	keys, err := h.client.Keys(h.t.Context(), "hotparam:{shop}:*").Result()
	if err != nil || len(keys) == 0 {
		h.t.Fatal("no keys in Redis:", err)
	}
	return keys
}

func (h *heatingFleet) expect(kind Type, k published.Hot) {
	h.t.Helper()
	if e := next(h.t, h.events); e.Type != kind || e.Key != k.Text {
		h.t.Fatalf("the next event is %s of %s (%s), want %s of %s", e.Type, e.Key, e.Why, kind, k.Text)
	}
}

// A key is reported once per heating, in spite of other limits and modes, an aggregator that
// restarts, a standby that takes over, and a Redis that loses all data.
func TestAHeatingIsToldOnce(t *testing.T) {
	t.Parallel()
	client, err := hotkeys.NewClient(testenv.Patient(t, testenv.Redis(t).URL()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	h := &heatingFleet{t: t, client: client, hot: make(map[int]published.Hot), began: time.Now().Add(-24 * time.Hour)}
	h.leader = h.start()
	eventually(t, "the first claims", h.leader.Publishes)
	h.standby = h.start()
	var ready <-chan struct{}
	h.events, ready = follow(t, client, "")
	<-ready
	random := rand.New(rand.NewPCG(1, 2))
	kinds := []int{1, 1, 2, 7, 3, 5, 2, 6, 4, 7, 0} // each of them, then a mix
	for range 12 {
		kinds = append(kinds, random.IntN(8))
	}
	for n, kind := range kinds {
		what := h.step(kind, n%3)
		t.Log(n, what)
		h.settle(what)
	}
	for i := range 3 { // no other event was sent
		if k, ok := h.hot[i]; ok {
			delete(h.hot, i)
			h.publish(hotkeytest.Cools(k))
			h.expect(Cool, k)
		}
	}
}
