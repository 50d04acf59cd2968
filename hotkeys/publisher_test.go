package hotkeys

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func wantInRedis(t *testing.T, client redis.UniversalClient, want map[string]int64) {
	t.Helper()
	if got := inRedis(t, client); !maps.Equal(got, want) {
		t.Fatalf("published: %v, want %v", got, want)
	}
}

func parseVersion(t *testing.T, client redis.UniversalClient) published.Version {
	t.Helper()
	v, err := published.ParseVersion(version(t, client))
	must(t, err)
	return v
}

// The test checks what a change writes to Redis, key by key, as any reader sees it.
func TestPublishLayout(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		sub := client.Subscribe(ctx, "hotparam:{shop}:changed")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		p := testPublisher(t, client, nil)
		must(t, p.settle(ctx)) // claims, and begins a history
		before := parseVersion(t, client)
		p.Publish(hots(hot(text(1), 212.5, 50), hot(text(2), 300, 60)))
		must(t, p.settle(ctx))
		p.Publish(cools(hot(text(2), 10, 60)))
		must(t, p.settle(ctx))

		member := "search-terms GET /search?q=1"
		if z := client.ZRangeWithScores(ctx, "hotparam:{shop}:hot", 0, -1).Val(); len(z) != 1 || z[0].Member != member || z[0].Score != 212.5 {
			t.Errorf("hot: %v", z)
		}
		now := client.Time(ctx).Val()
		var info map[string]any
		must(t, json.Unmarshal([]byte(client.HGet(ctx, "hotparam:{shop}:info", member).Val()), &info))
		until := time.UnixMilli(int64(info["until"].(float64)))
		if left := until.Sub(now); left < 10*time.Second || left > 15*time.Second {
			t.Errorf("until is %v away, want the default of 15s", left)
		}
		delete(info, "until")
		want := map[string]any{"low": 212.0, "high": 222.0, "since": 1732172445123.0, "limit": "50/s", "burst": 100.0, "mode": "limit", "owner": "statsd", "ratio": 2.125}
		if !maps.Equal(info, want) {
			t.Errorf("info: %v, want %v", info, want)
		}
		if v := parseVersion(t, client); v.Run != before.Run || v.N != before.N+2 {
			t.Errorf("version %v, want two more than %v", v, before)
		}
		if s := client.Get(ctx, "hotparam:{shop}:schema").Val(); s != "1" {
			t.Errorf("schema %q", s)
		}
		if beat := client.PTTL(ctx, "hotparam:{shop}:beat").Val(); beat <= 0 || beat > 5*time.Second {
			t.Errorf("beat lasts %v", beat)
		}
		if epoch := client.HGet(ctx, "hotparam:{shop}:owners", "statsd").Val(); epoch != "1" {
			t.Errorf("epoch %q", epoch)
		}
		for _, key := range client.Keys(ctx, "*").Val() {
			if !strings.HasPrefix(key, "hotparam:{shop}:") {
				t.Errorf("a key outside the namespace: %q", key)
			}
		}

		events := client.XRange(ctx, "hotparam:{shop}:events", "-", "+").Val()
		if len(events) != 3 {
			t.Fatalf("%d events, want the beginning and two changes", len(events))
		}
		for i, event := range events {
			pushed, err := sub.ReceiveMessage(ctx)
			must(t, err)
			payload := event.Values["change"].(string)
			if pushed.Payload != payload {
				t.Errorf("pushed %q, but the stream has %q", pushed.Payload, payload)
			}
			c, err := published.ParsePush([]byte(payload))
			must(t, err)
			if c.Version.String() != event.Values["version"] || c.Version.N != before.N+uint64(i) || c.Beat != 5*time.Second {
				t.Errorf("event %d: %+v", i, c)
			}
			switch i {
			case 1:
				if len(c.Hot) != 2 || c.Hot[0].TTL != 15*time.Second || c.Hot[0].Until.Sub(c.At) != 15*time.Second || len(c.Cool) != 0 {
					t.Errorf("event %d: %+v", i, c)
				}
			case 2:
				if len(c.Hot) != 0 || len(c.Cool) != 1 || c.Cool[0].Text != text(2) {
					t.Errorf("event %d: %+v", i, c)
				}
			}
		}
	})
}

func TestRenewKeepsVersion(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(1), 212, 50)))
		must(t, p.settle(ctx))
		before := version(t, client)
		was, err := List(ctx, client, testNamespace)
		must(t, err)

		fresh := hot(text(1), 999, 7) // its limit must not travel: Refresh is for counts
		fresh.Estimated = true
		fresh.Top = &published.Attribution{Callers: []published.Origin{{Name: "10.0.0.7", Count: 900}}, Explains: 2}
		senseless := hot(text(1), math.NaN(), 50)
		p.Refresh(0, []published.Hot{fresh, senseless})
		fresh.Top = nil // unknown now: the last known value is published
		p.Refresh(0, []published.Hot{fresh})
		must(t, client.Del(ctx, testLayout.Beat).Err())
		for now := was[0].Until.Add(-15 * time.Second); !now.After(was[0].Until.Add(-15 * time.Second)); { // the clock has moved on
			now = client.Time(ctx).Val()
		}
		must(t, p.renew(ctx))

		if v := version(t, client); v != before {
			t.Errorf("version %s became %s", before, v)
		}
		got, err := List(ctx, client, testNamespace)
		must(t, err)
		if len(got) != 1 || !got[0].Estimated || got[0].Rate != 999 || got[0].Low != 999 || got[0].High != 1009 || got[0].Limit.N != 50 || got[0].Until.Before(was[0].Until) {
			t.Errorf("got %+v", got)
		}
		if top := got[0].Top; top == nil || top.Explains != 2 || len(top.Callers) != 1 || top.Callers[0] != (published.Origin{Name: "10.0.0.7", Count: 900}) {
			t.Errorf("top: %+v", top)
		}
		if client.PTTL(ctx, testLayout.Beat).Val() <= 0 {
			t.Error("no heartbeat")
		}
	})
}

// A renewal of many entries takes many calls, and changes are published between them. Entries that
// cool during the renewal are not missed.
func TestRenewLetsChangesPass(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		var change published.Change
		for i := range 3 * maxRenewed {
			change.Hot = append(change.Hot, hot(text(i), 100, 50))
		}
		p.Publish(change)
		must(t, p.settle(ctx))
		for i := range change.Hot {
			change.Hot[i].Rate = 300
		}
		p.Refresh(0, change.Hot)
		<-p.wake
		client.AddHook(&callHook{after: sync.OnceFunc(func() { // in the middle of the renewal
			p.Publish(cools(change.Hot[maxRenewed:]...))
			p.Publish(hots(hot("new", 300, 50)))
		})})
		must(t, p.renew(ctx))
		got, err := List(ctx, client, testNamespace)
		must(t, err)
		if len(got) != maxRenewed+1 || got[len(got)-1].Rate != 300 {
			t.Errorf("%d keys, the lowest rate %v", len(got), got[len(got)-1].Rate)
		}
		if s := p.Stats(); s.Rewrites != 1 || s.Changes != 1 || s.Renewals != 1 {
			t.Errorf("%+v: want nothing missed", s)
		}
	})
}

// A change is published while a renewal finds that Redis lost state. The renewal does not undo the
// change with the older state that it began with.
func TestRenewalUndoesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(1), 100, 50)))
		must(t, p.settle(t.Context()))
		admin := testClient(t, "redis://"+client.(*redis.Client).Options().Addr)
		client.AddHook(&callHook{before: sync.OnceFunc(func() {
			p.Publish(hots(hot(text(1), 100, 60)))
			must(t, admin.Del(t.Context(), testLayout.Version).Err())
		})})
		must(t, p.renew(t.Context()))
		wantInRedis(t, admin, map[string]int64{text(1): 60})
		if s := p.Stats(); s.Rewrites != 2 || s.Renewals != 1 {
			t.Errorf("%+v: want the set written anew, and renewed", s)
		}
	})
}

// callHook is called before and after each command.
type callHook struct{ before, after func() }

func (h *callHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *callHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *callHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.before != nil {
			h.before()
		}
		err := next(ctx, cmd)
		if h.after != nil {
			h.after()
		}
		return err
	}
}

// A process that was paused while another took its part must not write.
func TestFencing(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		old, successor := testPublisher(t, client, nil), testPublisher(t, client, nil)
		old.Publish(hots(hot(text(1), 100, 50)))
		must(t, old.settle(ctx))
		successor.Publish(hots(hot(text(2), 100, 50)))
		must(t, successor.settle(ctx))

		steps := map[string]func(){
			"change": func() {
				old.Publish(cools(hot(text(2), 1, 1), hot(text(1), 1, 1)))
				old.Publish(hots(hot(text(3), 1, 1)))
				must(t, old.settle(ctx))
			},
			"renew": func() { must(t, old.renew(ctx)) },
			"prune": func() { must(t, old.prune(ctx)) },
			"trim":  func() { must(t, old.trim(ctx)) },
			"claim": func() { old.reclaim = true; must(t, old.settle(ctx)) },
			"state lost": func() {
				old.rewrite = true
				must(t, old.settle(ctx))
			},
		}
		for name, step := range steps {
			must(t, successor.renew(ctx)) // it lives
			old.standby = false           // as if it did not know yet
			before := version(t, client)
			step()
			if old.Stats().FencedBy == "" || !old.standby {
				t.Errorf("%s: not fenced", name)
			}
			if v := version(t, client); v != before {
				t.Errorf("%s: version %s became %s", name, before, v)
			}
		}
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50})
		if successor.Stats().FencedBy != "" {
			t.Error("the successor is fenced")
		}
	})
}

// After Redis has lost all claims, the first to claim again wins. Two publishers whose epochs
// happen to be equal cannot both write.
func TestFencingAfterFlush(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		first, second := testPublisher(t, client, nil), testPublisher(t, client, nil)
		must(t, first.settle(ctx))  // epoch 1
		must(t, second.settle(ctx)) // epoch 2
		must(t, client.FlushAll(ctx).Err())
		first.Publish(hots(hot(text(1), 100, 50)))
		must(t, first.settle(ctx)) // was at 1, so takes 2
		second.Publish(hots(hot(text(2), 100, 50)))
		must(t, second.settle(ctx))
		if (first.Stats().FencedBy == "") == (second.Stats().FencedBy == "") {
			t.Errorf("fenced by %q and %q, want one of them", first.Stats().FencedBy, second.Stats().FencedBy)
		}
		wantInRedis(t, client, map[string]int64{text(1): 50})
	})
}

// A script that Redis runs after its caller gave up must not undo later changes.
func TestLateScriptIsFenced(t *testing.T) {
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := context.Background()
	p := testPublisher(t, client, nil)
	for _, key := range []string{text(1), text(3)} { // the second is a change: its script is known then
		p.Publish(hots(hot(key, 100, 50)))
		must(t, p.settle(ctx))
	}
	epoch := p.epoch
	server.Pause()
	p.Publish(hots(hot(text(2), 100, 50)))
	p.cfg.Timeout = 50 * time.Millisecond
	err := p.settle(ctx)
	server.Resume()
	if err == nil {
		t.Fatal("a paused Redis answered")
	}
	p.reclaim = true // as Run does
	p.cfg.Timeout = patience
	p.Publish(cools(hot(text(2), 1, 50)))
	must(t, p.settle(ctx))
	wantInRedis(t, client, map[string]int64{text(1): 50, text(3): 50})
	if p.epoch <= epoch || p.Stats().FencedBy != "" {
		t.Errorf("epoch %d after %d, fenced %v: want a new claim of its own", p.epoch, epoch, p.Stats().FencedBy != "")
	}
}

func TestVersionGoesBack(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(context.Context, redis.UniversalClient) error{
		"all flushed":     func(ctx context.Context, c redis.UniversalClient) error { return c.FlushAll(ctx).Err() },
		"version deleted": func(ctx context.Context, c redis.UniversalClient) error { return c.Del(ctx, testLayout.Version).Err() },
		"version garbled": func(ctx context.Context, c redis.UniversalClient) error {
			return c.Set(ctx, testLayout.Version, "??", 0).Err()
		},
		"entry deleted": func(ctx context.Context, c redis.UniversalClient) error {
			return c.Del(ctx, testLayout.Hot, testLayout.Info).Err()
		},
		"version set back": func(ctx context.Context, c redis.UniversalClient) error {
			v, err := published.ParseVersion(c.Get(ctx, testLayout.Version).Val())
			v.N--
			return errors.Join(err, c.Set(ctx, testLayout.Version, v.String(), 0).Err())
		},
		"an old copy": func(ctx context.Context, c redis.UniversalClient) error {
			v, err := published.ParseVersion(c.Get(ctx, testLayout.Version).Val())
			v.N--
			c.HSet(ctx, testLayout.Owners, "statsd", 0)
			return errors.Join(err, c.Set(ctx, testLayout.Version, v.String(), 0).Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, client redis.UniversalClient) {
				ctx := context.Background()
				p := testPublisher(t, client, nil)
				other := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
				p.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
				must(t, p.settle(ctx))
				other.Publish(hots(hot(text(3), 100, 50)))
				must(t, other.settle(ctx))
				p.Publish(hots(hot(text(1), 100, 70)))
				must(t, p.settle(ctx))
				before := parseVersion(t, client)

				must(t, lose(ctx, client))
				must(t, p.renew(ctx))
				must(t, other.renew(ctx))
				wantInRedis(t, client, map[string]int64{text(1): 70, text(2): 50, text(3): 50})
				after := parseVersion(t, client)
				if name == "entry deleted" {
					if after.Run != before.Run || after.N <= before.N {
						t.Errorf("version %v after %v, want a later one of the same run", after, before)
					}
				} else if after.Run == before.Run {
					t.Errorf("version %v after %v, want another run", after, before)
				}
				if p.Stats().Rewrites < 1 || p.Stats().FencedBy != "" || other.Stats().FencedBy != "" {
					t.Errorf("%+v, %+v", p.Stats(), other.Stats())
				}
			})
		})
	}
}

// A rewrite removes the entries that this owner published before, and only those.
func TestRewriteReplacesOwnEntries(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		dead := testPublisher(t, client, nil)
		dead.Publish(hots(hot(text(1), 100, 50)))
		must(t, dead.settle(ctx))
		other := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
		other.Publish(hots(hot(text(2), 100, 50)))
		must(t, other.settle(ctx))
		successor := testPublisher(t, client, nil)
		successor.Publish(hots(hot(text(3), 100, 50)))
		must(t, successor.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50, text(3): 50}) // adopted, until their time to live ends
		successor.rewrite = true
		must(t, successor.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(2): 50, text(3): 50})
	})
}

func TestCapKeepsTopByRatio(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, func(c *PublisherConfig) { c.Cap = 4 })
		for i := range 6 {
			p.Publish(hots(hot(text(i), float64(101+i), 50)))
			must(t, p.settle(ctx))
		}
		wantInRedis(t, client, map[string]int64{text(0): 50, text(1): 50, text(2): 50, text(3): 50})
		if s := p.Stats(); s.Overflow != 2 || s.Waiting != 2 || s.Keys != 4 {
			t.Errorf("%+v", s)
		}
		p.Publish(cools(hot(text(0), 0, 50))) // the best of the waiting keys takes its place
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50, text(3): 50, text(5): 50})
		p.Publish(hots(hot(text(6), 204, 50))) // twice as hot as the least is not enough
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50, text(3): 50, text(5): 50})
		p.Publish(hots(hot(text(7), 205, 50)))
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(7): 50, text(2): 50, text(3): 50, text(5): 50})
		before := version(t, client)
		for i := range 1000 { // a flood is bounded, and changes nothing
			p.Publish(hots(hot(text(1000+i), 100+float64(i)/10, 50)))
		}
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(7): 50, text(2): 50, text(3): 50, text(5): 50})
		if s := p.Stats(); s.Waiting > 4 || s.Overflow < 900 || version(t, client) != before {
			t.Errorf("%+v", s)
		}
	})
}

// A key dropped from the full set returns with a refresh, and is published when there is room.
func TestRefreshBringsBack(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, func(c *PublisherConfig) { c.Cap = 4 })
		flood := make([]published.Hot, 100)
		for i := range flood {
			flood[i] = hot(text(i), 500, 50)
		}
		phone := hot("phone", 120, 50)
		p.Publish(hots(append(flood, phone)...))
		must(t, p.settle(ctx))
		p.Refresh(0, append(flood, phone))
		if s := p.Stats(); s.Keys != 4 || s.Waiting != 97 || s.Rules["search-terms"] != (RulePlaces{Placed: 4, Waiting: 97, Overflow: 97}) {
			t.Errorf("in the flood: %+v", s)
		}
		p.Publish(cools(flood...))
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{})
		<-p.wake // of the change
		if p.Refresh(0, []published.Hot{phone}); len(p.wake) != 1 {
			t.Fatal("what came back waits for a renewal")
		}
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{"phone": 50})
		if s := p.Stats(); s.Keys != 1 || s.Waiting != 0 {
			t.Errorf("after the flood: %+v", s)
		}
	})
}

// A key that watchers could not read counts as unpublishable as long as it is hot.
func TestRefreshCountsWhatNoWatcherReads(t *testing.T) {
	p := testPublisher(t, testClient(t, "redis://127.0.0.1:1"), nil)
	garbled, senseless := hot("GET /\xff", 100, 50), hot(text(1), 100, 50)
	senseless.Ratio = math.Inf(1)
	p.Refresh(1, []published.Hot{garbled, senseless, hot(text(2), 100, 50)})
	if s := p.Stats(); s.Unpublishable != 2 || s.Waiting != 0 || len(p.desired.known) != 1 {
		t.Errorf("%+v", s)
	}
	p.Refresh(1, nil)
	if s := p.Stats(); s.Unpublishable != 0 {
		t.Errorf("%+v when nothing is hot", s)
	}
}

// A change of more than 64 KiB is pushed as its version alone. The stream has it in full.
func TestLongPush(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		must(t, p.settle(ctx))
		sub := client.Subscribe(ctx, testLayout.Changed)
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		var many published.Change
		for i := range 500 {
			many.Hot = append(many.Hot, hot(text(i), 100, 50))
		}
		p.Publish(many)
		must(t, p.settle(ctx))
		msg, err := sub.ReceiveMessage(ctx)
		must(t, err)
		if want := `{"version":"` + version(t, client) + `"}`; msg.Payload != want {
			t.Errorf("pushed %.100s, want %s", msg.Payload, want)
		}
		last := client.XRevRangeN(ctx, testLayout.Events, "+", "-", 1).Val()[0].Values["change"].(string)
		c, err := published.ParsePush([]byte(last))
		must(t, err)
		if len(last) <= published.MaxPush || len(c.Hot) != 500 {
			t.Errorf("the stream has %d bytes with %d keys", len(last), len(c.Hot))
		}
	})
}

func TestPruneRemovesWhatIsOver(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		dead := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1"; c.EntryTTL = time.Second })
		dead.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
		must(t, dead.settle(ctx))
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(3), 100, 50)))
		must(t, p.settle(ctx))
		// Garbage of three kinds is removed as well.
		must(t, client.ZAdd(ctx, testLayout.Hot, redis.Z{Member: "no info", Score: 1}).Err())
		must(t, client.HSet(ctx, testLayout.Info, "not hot", `{"until":99999999999999}`).Err())
		must(t, client.HSet(ctx, testLayout.Info, "no json", `]`).Err())
		pruneStrange(t, p)
		wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50, text(3): 50})

		end, err := List(ctx, client, testNamespace)
		must(t, err)
		last := end[0].Until
		for _, h := range end {
			if h.Owner == "kafka-1" {
				last = h.Until
			}
		}
		for client.Time(ctx).Val().Before(last) { // by Redis's clock
		}
		before := parseVersion(t, client)
		must(t, p.prune(ctx))
		wantInRedis(t, client, map[string]int64{text(3): 50})
		if after := parseVersion(t, client); after.Run != before.Run || after.N != before.N+1 {
			t.Errorf("version %v after %v, want the next one", after, before)
		}
		c, err := published.ParsePush([]byte(client.XRevRangeN(ctx, testLayout.Events, "+", "-", 1).Val()[0].Values["change"].(string)))
		must(t, err)
		if len(c.Cool) != 2 || p.Stats().Pruned != 5 {
			t.Errorf("cooled %v, pruned %d", c.Cool, p.Stats().Pruned)
		}
		must(t, p.prune(ctx)) // nothing to do: no change
		if again := parseVersion(t, client); again.N != before.N+1 {
			t.Errorf("version %v: pruning nothing is no change", again)
		}
	})
}

func TestTrimForgetsOldChanges(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		must(t, client.XAdd(ctx, &redis.XAddArgs{Stream: testLayout.Events, ID: "1000-0", Values: []string{"version", "old:1", "change", "{}"}}).Err())
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(1), 100, 50)))
		must(t, p.settle(ctx))
		must(t, p.trim(ctx))
		events := client.XRange(ctx, testLayout.Events, "-", "+").Val()
		if len(events) != 1 || events[0].Values["version"] != version(t, client) {
			t.Errorf("left: %v", events)
		}
	})
}

func TestForeignSchemaIsLeftAlone(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		must(t, client.Set(ctx, testLayout.Schema, "2", 0).Err())
		p := testPublisher(t, client, nil)
		p.Publish(hots(hot(text(1), 100, 50)))
		if err := p.settle(ctx); err == nil || !strings.Contains(err.Error(), testLayout.Schema) {
			t.Errorf("err = %v, want one that names the key", err)
		}
		if keys := client.Keys(ctx, "*").Val(); len(keys) != 1 {
			t.Errorf("written: %q", keys)
		}
	})
}

func TestScriptFlush(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		for i := range 3 {
			p.Publish(hots(hot(text(i), 100, 50)))
			must(t, p.settle(ctx))
			must(t, client.ScriptFlush(ctx).Err())
			must(t, p.renew(ctx))
			must(t, client.ScriptFlush(ctx).Err())
		}
		wantInRedis(t, client, map[string]int64{text(0): 50, text(1): 50, text(2): 50})
		if s := p.Stats(); s.Failures != 0 || s.Rewrites != 1 {
			t.Errorf("%+v", s)
		}
	})
}

func TestPublishRefusesWhatNoWatcherReads(t *testing.T) {
	p := testPublisher(t, testClient(t, "redis://127.0.0.1:1"), nil)
	bad := map[string]published.Hot{}
	for name, edit := range map[string]func(*published.Hot){
		"not UTF-8":      func(h *published.Hot) { h.Text = "GET /\xff" },
		"no rule":        func(h *published.Hot) { h.Rule = "" },
		"rule of two":    func(h *published.Hot) { h.Rule = "a b" },
		"negative count": func(h *published.Hot) { h.Low = -1 },
		"no number":      func(h *published.Hot) { h.Rate = math.NaN() },
		"no ratio":       func(h *published.Hot) { h.Ratio = math.NaN() },
		"no since":       func(h *published.Hot) { h.Since = time.Time{} },
		"no burst":       func(h *published.Hot) { h.Burst = 0 },
	} {
		h := hot(text(1), 100, 50)
		edit(&h)
		bad[name] = h
		p.Publish(hots(h))
	}
	if s := p.Stats(); s.Refused != uint64(len(bad)) || len(p.desired.known) != 0 {
		t.Errorf("refused %d of %d, known %v", s.Refused, len(bad), p.desired.known)
	}
	if len(p.wake) != 0 {
		t.Error("woke for nothing")
	}
}

func TestPublisherConfig(t *testing.T) {
	client := testClient(t, "redis://127.0.0.1:1")
	for name, cfg := range map[string]PublisherConfig{
		"Namespace": {Namespace: "a b"},
		"Owner":     {Namespace: "a", Owner: "x:holder"},
		"Cap":       {Namespace: "a", Cap: -1},
		"EntryTTL":  {Namespace: "a", EntryTTL: time.Millisecond},
		"BeatTTL":   {Namespace: "a", BeatTTL: time.Second},
	} {
		if _, err := NewPublisher(client, cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: err = %v, want one that names the field", name, err)
		}
	}
}

// A failover lost a change of one owner, and another owner raised the version again before the
// first one looks. The first one still writes its part again.
func TestLostChangeIsNoticed(t *testing.T) {
	client := testClient(t, testenv.Redis(t).URL()) // miniredis has no DUMP of these types
	ctx := t.Context()
	one := testPublisher(t, client, nil)
	other := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
	one.Publish(hots(hot(text(1), 100, 50)))
	must(t, one.settle(ctx))
	other.Publish(hots(hot(text(2), 100, 50)))
	must(t, other.settle(ctx))
	must(t, one.renew(ctx)) // and sees the other's version
	keys := []string{testLayout.Hot, testLayout.Info, testLayout.Version, testLayout.Owners}
	copies := make(map[string]string)
	for _, key := range keys {
		copies[key] = client.Dump(ctx, key).Val()
	}
	before := parseVersion(t, client)
	one.Publish(cools(hot(text(1), 1, 50)))
	must(t, one.settle(ctx))
	for _, key := range keys {
		must(t, client.RestoreReplace(ctx, key, 0, copies[key]).Err())
	}
	other.Publish(hots(hot(text(3), 100, 50)))
	must(t, other.settle(ctx))
	must(t, one.renew(ctx))
	wantInRedis(t, client, map[string]int64{text(2): 50, text(3): 50})
	if after := parseVersion(t, client); after.Run == before.Run {
		t.Errorf("version %v after %v: want another run, as watchers may have seen what was lost", after, before)
	}
	if s := one.Stats(); s.Rewrites != 2 || s.FencedBy != "" || s.Failures != 0 {
		t.Errorf("%+v, want a second rewrite", s)
	}
}
