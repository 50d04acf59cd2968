package hotkeys

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// publishedHot returns everything that readers of the set see.
func publishedHot(t *testing.T, client redis.UniversalClient) map[string]string {
	t.Helper()
	ctx := context.Background()
	all := client.HGetAll(ctx, testLayout.Info).Val()
	for _, z := range client.ZRangeWithScores(ctx, testLayout.Hot, 0, -1).Val() {
		all[z.Member.(string)] += fmt.Sprint(" ", z.Score)
	}
	all["version"] = version(t, client)
	return all
}

// A publisher that adopts a part of the set continues with it unchanged.
func TestAdopt(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		former := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-7" })
		other := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-8" })
		change := hots(hot(text(1), 212.5, 50), hot(text(2), 300, 60), hot(text(3), 300, 60))
		change.Hot[0].Top = &published.Attribution{Callers: []published.Origin{{Name: "10.0.0.7", Count: 900}}}
		judged := time.UnixMilli(1_790_000_000_123)
		former.Publish(change)
		former.Judged(judged)
		must(t, former.settle(ctx))
		other.Publish(hots(hot(text(4), 100, 50)))
		must(t, other.settle(ctx))
		info := client.HGet(ctx, testLayout.Info, hot(text(3), 1, 1).Key.String()).Val()
		before, _, _ := strings.Cut(info, `"until":`)
		must(t, client.HSet(ctx, testLayout.Info, // one that has ended, and three that cannot be read
			hot(text(3), 1, 1).Key.String(), before+`"until":1,"limit":null,"burst":0,"mode":"watch","owner":"kafka-7"}`,
			"no json", "]", "no owner", `{"until":99999999999999}`,
			"nameless", strings.Replace(client.HGet(ctx, testLayout.Info, change.Hot[0].Key.String()).Val(), "kafka-8", "kafka-7", 1)).Err())
		must(t, client.ZAdd(ctx, testLayout.Hot, redis.Z{Member: "nameless", Score: 1}).Err())
		was := publishedHot(t, client)

		p := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-7" })
		adopted, until, err := p.Adopt(ctx)
		must(t, err)
		if !until.Equal(judged) {
			t.Errorf("the former holder has judged up to %v, want %v", until, judged)
		}
		if got := publishedHot(t, client); !maps.Equal(got, was) {
			t.Errorf("published: %v, want as before: %v", got, was)
		}
		listed, err := List(ctx, client, testNamespace)
		must(t, err)
		want := make(map[string]published.Hot)
		for _, h := range listed {
			if h.Owner == "kafka-7" {
				want[h.Text] = h
			}
		}
		if len(adopted) != 2 || len(want) != 2 {
			t.Errorf("adopted %+v, want those of %+v", adopted, want)
		}
		for _, h := range adopted {
			w := want[h.Text]
			if h.Key != w.Key || h.Low != w.Low || h.High != w.High || h.Rate != w.Rate || h.Limit != w.Limit || h.Burst != w.Burst ||
				!h.Since.Equal(w.Since) || !h.Until.Equal(w.Until) || h.Owner != w.Owner || (h.Top == nil) != (w.Top == nil) {
				t.Errorf("adopted %+v, want %+v", h, w)
			}
		}
		if s := p.Stats(); s.Unreadable != 3 || s.Keys != 2 || s.Version != version(t, client) || s.FencedBy != "" {
			t.Errorf("%+v", s)
		}

		must(t, p.renew(ctx))
		pruneStrange(t, p) // as Run begins: no claim, and the only change removes entries without an owner
		if s := p.Stats(); s.Changes != 0 || s.Rewrites != 0 || s.Pruned != 3 || client.HGet(ctx, testLayout.Owners, "kafka-7").Val() != "2" {
			t.Errorf("%+v, epoch %s: want nothing but a renewal, and what is nobody's pruned", s, client.HGet(ctx, testLayout.Owners, "kafka-7").Val())
		}
		former.Publish(cools(change.Hot[1])) // it was paused, and resumes
		must(t, former.settle(ctx))
		must(t, former.renew(ctx))
		if s := former.Stats(); s.FencedBy == "" {
			t.Errorf("the former holder: %+v, want it fenced", s)
		}
		p.Publish(cools(change.Hot[0]))
		must(t, p.settle(ctx))
		must(t, p.prune(ctx))
		p.rewrite = true // removes the entries that it has but could not read
		must(t, p.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(2): 60, text(4): 50})
		if _, _, err := p.Adopt(ctx); err == nil {
			t.Error("adopted twice")
		}
	})
}

// Adoption succeeds when nothing was published, and when the adopted part was empty.
func TestAdoptNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		adopted, judged, err := p.Adopt(ctx)
		must(t, err)
		if len(adopted) != 0 || !judged.IsZero() {
			t.Errorf("adopted %v, judged up to %v", adopted, judged)
		}
		p.Publish(hots(hot(text(1), 100, 50)))
		must(t, p.renew(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 50})
	})
}

// A publisher is killed and another adopts its part. No watcher sees a key cool.
func TestAdoptAfterKill(t *testing.T) {
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	seen := newRecorder()
	testenv.Running(t, testWatcher(t, client, seen).Run)
	killed := testPublisher(t, client, nil)
	killed.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
	must(t, killed.settle(t.Context())) // it does nothing more
	seen.await(t, "what was published", has(text(1), text(2)))
	swaps := seen.swapped()

	p := testPublisher(t, client, nil)
	adopted, _, err := p.Adopt(t.Context())
	must(t, err)
	p.Refresh(0, adopted)
	testenv.Running(t, p.Run)
	p.Publish(hots(hot(text(3), 100, 50)))
	seen.await(t, "what the successor adds", has(text(1), text(2), text(3)))
	p.Publish(cools(hot(text(1), 100, 50)))
	seen.await(t, "what the successor takes away", has(text(2), text(3)))
	if n := seen.swapped() - swaps; n != 2 {
		t.Errorf("%d swaps, want one for each change of the successor", n)
	}
}

// While Redis is unavailable, adoption fails in time. Its script does no harm if it runs late.
func TestAdoptWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	former := testPublisher(t, client, nil)
	former.Publish(hots(hot(text(1), 100, 50)))
	must(t, former.settle(t.Context()))
	must(t, adoptScript.Load(t.Context(), client).Err())

	p := testPublisher(t, client, func(c *PublisherConfig) { c.Timeout = 100 * time.Millisecond })
	server.Pause()
	for range 3 {
		from := time.Now()
		_, _, err := p.Adopt(t.Context())
		if took := time.Since(from); err == nil || took > patience/4 || !strings.Contains(err.Error(), "statsd") {
			t.Errorf("err = %v after %v, want one that names the owner, in time", err, took)
		}
	}
	server.Resume()
	p.cfg.Timeout = patience
	adopted, _, err := p.Adopt(t.Context())
	must(t, err)
	if len(adopted) != 1 {
		t.Errorf("adopted %v", adopted)
	}
	// The last of the late scripts may run after the adoption that was answered.
	must(t, client.HIncrBy(t.Context(), testLayout.Owners, "statsd", 1).Err())
	p.Publish(hots(hot(text(2), 100, 50)))
	must(t, p.renew(t.Context()))
	wantInRedis(t, client, map[string]int64{text(1): 50, text(2): 50})
	if s := p.Stats(); s.FencedBy != "" || s.Failures != 3 {
		t.Errorf("%+v", s)
	}
	server.Kill()
	if _, _, err := testPublisher(t, client, nil).Adopt(t.Context()); err == nil {
		t.Error("adopted from a Redis that is dead")
	}
}

// A key that moved to another owner stays there. Changes by the former owner, which does not know
// it yet, have no effect.
func TestKeyMovesToAnotherOwner(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		former := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-0" })
		now := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
		former.Publish(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)))
		must(t, former.settle(ctx))
		now.Publish(hots(hot(text(1), 200, 70)))
		must(t, now.settle(ctx))
		owned := func(what string, rate float64, owner string) {
			t.Helper()
			listed, err := List(ctx, client, testNamespace)
			must(t, err)
			for _, h := range listed {
				if h.Text == text(1) {
					if h.Owner != owner || h.Rate != rate {
						t.Errorf("%s: %+v, want rate %v of %s", what, h, rate, owner)
					}
					return
				}
			}
			t.Errorf("%s: the key is gone: %v", what, listed)
		}
		owned("taken", 200, "kafka-1")
		must(t, former.renew(ctx))
		owned("renewed by the former owner", 200, "kafka-1")
		former.rewrite = true
		must(t, former.settle(ctx))
		owned("rewritten by the former owner", 200, "kafka-1")
		before := version(t, client)
		former.Publish(cools(hot(text(1), 1, 50)))
		must(t, former.settle(ctx))
		owned("cooled by the former owner", 200, "kafka-1")
		if v := version(t, client); v != before {
			t.Errorf("version %s became %s: a key that stays is no change", before, v)
		}
		former.Publish(cools(hot(text(2), 1, 50)))
		must(t, former.settle(ctx))
		wantInRedis(t, client, map[string]int64{text(1): 70})

		// Both owners see the key as hot and the later one lets it cool: the other owns it again.
		former.Publish(hots(hot(text(1), 100, 50)))
		must(t, former.settle(ctx))
		owned("taken back", 100, "kafka-0")
		former.Publish(cools(hot(text(1), 1, 50)))
		must(t, former.settle(ctx))
		wantInRedis(t, client, map[string]int64{})
		must(t, now.renew(ctx))
		owned("put back", 200, "kafka-1")

		// An owner that no longer renews keeps nothing.
		member := hot(text(1), 1, 1).Key.String()
		info := client.HGet(ctx, testLayout.Info, member).Val()
		head, tail, _ := strings.Cut(info, `"until":`)
		_, tail, _ = strings.Cut(tail, ",")
		soon := client.Time(ctx).Val().Add(former.cfg.EntryTTL / 3).UnixMilli()
		must(t, client.HSet(ctx, testLayout.Info, member, fmt.Sprintf(`%s"until":%d,%s`, head, soon, tail)).Err())
		former.Publish(hots(hot(text(1), 100, 70)))
		former.sent[member] = entryTermsOf(hot(text(1), 100, 70))
		must(t, former.renew(ctx))
		owned("left to fade", 100, "kafka-0")
	})
}
