package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

// poisoner writes values into a namespace's keys that no publisher would write. It knows only their
// types.
type poisoner struct {
	t      *testing.T
	random *rand.Rand
	admin  redis.UniversalClient
}

// poisonable are all keys with their types.
var poisonable = map[string]string{
	testLayout.Hot: "zset", testLayout.Info: "hash", testLayout.Version: "string", testLayout.Owners: "hash",
	testLayout.Beat: "string", testLayout.Events: "stream", testLayout.Schema: "string",
	testLayout.Suspects: "zset", testLayout.Suspects + ":kafka-0": "zset", testLayout.Suspects + ":kafka-1": "zset",
	testLayout.Instances: "zset",
}

// garbage returns an invalid value: out of range, not a number, binary, or not JSON.
func (p *poisoner) garbage() string {
	all := []string{
		"", "x", "-1", "0", "00", "1e3", "0x10", "nan", "inf", "-inf", "1.5", " 7", "9007199254740991", "9007199254740992", "4503599627370496",
		"9223372036854775807", "18446744073709551615", "253402300799999", strings.Repeat("9", 400), "\x00\xff\xfe\x01\x02\x03\x04", "é\n\"",
		"{", "[]", "null", `{"owner":7}`, `{"owner":"kafka-0","until":1e999}`, `{"owner":"kafka-0","until":"nan"}`, `{"owner":"nobody","until":253402300799999}`,
		`{"instances":-1}`, `{"instances":1e9,"suspects":5}`, strings.Repeat("[", 5000), "a:9007199254740991", "a:0", "a:-1", "a:1:2", strings.Repeat("a", 65) + ":1", ":",
		"search-terms", "search-terms ", "NO RULE x", "search-terms GET /search?q=%GG",
	}
	return all[p.random.IntN(len(all))]
}

// number returns a score that hotparam never writes.
func (p *poisoner) number() float64 {
	all := []float64{0, -1, math.Inf(1), math.Inf(-1), 1 << 53, -1e308, 1e308, 5e-324}
	return all[p.random.IntN(len(all))]
}

func (p *poisoner) do(args ...any) {
	p.t.Helper()
	err := p.admin.Do(p.t.Context(), args...).Err()
	if err != nil && !errors.Is(err, redis.Nil) && !strings.Contains(err.Error(), "WRONGTYPE") {
		p.t.Fatalf("%q: %v", args, err)
	}
}

// strike poisons one key, and says how.
func (p *poisoner) strike() string {
	key := slices.Sorted(maps.Keys(poisonable))[p.random.IntN(len(poisonable))]
	kind := poisonable[key]
	if p.random.IntN(2) == 0 { // of another type
		types := slices.DeleteFunc([]string{"zset", "hash", "string", "stream", "set", "list"}, func(t string) bool { return t == kind })
		kind = types[p.random.IntN(len(types))]
		p.do("DEL", key)
	}
	p.poison(key, kind)
	return key + " as " + kind
}

func (p *poisoner) poison(key, kind string) {
	switch kind {
	case "string":
		p.do("SET", key, p.garbage())
	case "list":
		p.do("RPUSH", key, p.garbage())
	case "set":
		p.do("SADD", key, p.garbage())
	case "zset":
		for range 3 {
			p.do("ZADD", key, p.number(), p.garbage())
		}
		if members, _ := p.admin.ZRange(p.t.Context(), key, 0, -1).Result(); len(members) > 0 { // a score of a member of ours
			p.do("ZADD", key, p.number(), members[p.random.IntN(len(members))])
		}
	case "hash":
		for range 3 {
			p.do("HSET", key, p.garbage(), p.garbage())
		}
		if fields, _ := p.admin.HKeys(p.t.Context(), key).Result(); len(fields) > 0 {
			p.do("HSET", key, fields[p.random.IntN(len(fields))], p.garbage())
		}
	case "stream":
		id := []string{"*", "18446744073709551615-18446744073709551615"}[p.random.IntN(2)]
		if err := p.admin.Do(p.t.Context(), "XADD", key, id, p.garbage(), p.garbage(), "version", p.garbage(), "change", p.garbage()).Err(); err != nil &&
			!strings.Contains(err.Error(), "WRONGTYPE") && !strings.Contains(err.Error(), "ID") {
			p.t.Fatal(err)
		}
	}
}

// Foreign values are written into our keys at any time. All owners continue to publish, watchers
// hold the published keys, and a key that stays hot never cools at any watcher.
func TestPoisonedKeysHeal(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	seed := testenv.Seed(t)
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	p := &poisoner{t, rand.New(rand.NewPCG(seed, 0)), admin}
	log := new(testenv.LogBuffer)
	owners := []string{"kafka-0", "kafka-1"}
	var publishers []*Publisher
	want := map[string]int64{"steady": 50}
	for i, owner := range owners {
		q := testPublisher(t, testClient(t, server.URL()), func(c *PublisherConfig) { c.Owner, c.Timeout, c.Logger = owner, 0, loggerTo(log) })
		q.Suspects(0, []published.Hot{hot("suspect of "+owner, 10, 5)})
		q.Instances([]published.Instance{{Name: owner, Heard: time.Now().Add(time.Hour)}})
		if i == 0 {
			q.Publish(hots(hot("steady", 1000, 50)))
		}
		testenv.Running(t, q.Run)
		publishers = append(publishers, q)
	}
	var seen []*recorder
	var watchers []*Watcher
	for range 2 {
		r := newRecorder()
		w, err := NewWatcher(testClient(t, server.URL()), WatcherConfig{Namespace: testNamespace, Logger: loggerTo(log)}, r)
		must(t, err)
		testenv.Running(t, w.Run)
		r.await(t, "the steady key", has("steady"))
		seen, watchers = append(seen, r), append(watchers, w)
	}
	const rounds = 8
	for round := range rounds {
		var struck []string
		for range 1 + p.random.IntN(6) {
			struck = append(struck, p.strike())
			publishers[p.random.IntN(2)].Publish(hots(hot("passing", float64(p.random.IntN(1000)), 7)))
			time.Sleep(time.Duration(p.random.IntN(300)) * time.Millisecond) // a random time
		}
		for _, q := range publishers {
			q.Publish(cools(hot("passing", 1, 7)))
		}
		from := time.Now()
		for i, q := range publishers {
			h := hot(text(2*round+i), 500, int64(1+round))
			want[h.Text] = h.Limit.N
			q.Publish(hots(h))
		}
		for i, r := range seen {
			r.await(t, fmt.Sprintf("watcher %d after %q", i, struck), func(hot map[string]published.Hot) bool { return maps.Equal(limits(hot), want) })
			if r.everCooled("steady") {
				t.Fatalf("watcher %d let go of a key that is hot, after %q", i, struck)
			}
		}
		inForce := time.Since(from)
		wait(t, func() error { // and debris is removed
			got, err := readInRedis(t.Context(), admin)
			if err == nil && !maps.Equal(got, want) {
				err = fmt.Errorf("published %v", got)
			}
			if err != nil {
				return fmt.Errorf("after %q: %w", struck, err)
			}
			return typesAreOurs(t.Context(), admin)
		})
		for i, r := range seen {
			r.awaitFleet(t, fmt.Sprintf("the fleet at watcher %d after %q", i, struck), 2, "suspect of kafka-0", "suspect of kafka-1")
		}
		t.Logf("%q: in force after %v, clean after %v", struck, inForce.Round(time.Millisecond), time.Since(from).Round(time.Millisecond))
	}
	healed := Healed{}
	for _, q := range publishers {
		s := q.Stats()
		healed.Add(s.Healed)
		if s.FencedBy != "" || s.Trouble != "" {
			t.Errorf("%+v", s)
		}
	}
	if healed == (Healed{}) {
		t.Error("nothing was counted")
	}
	t.Logf("healed %v; the watchers: %+v, %+v", healed, watchers[0].Stats(), watchers[1].Stats())
	if said := log.Lines(); len(said) > 60 {
		t.Errorf("%d lines:\n%s", len(said), strings.Join(said, "\n"))
	}
}

// typesAreOurs returns nil if each existing key has its type.
func typesAreOurs(ctx context.Context, admin redis.UniversalClient) error {
	for key, want := range poisonable {
		if got := admin.Type(ctx, key).Val(); got != want && got != "none" {
			return fmt.Errorf("%s is a %s", key, got)
		}
	}
	return nil
}

// wait polls until ok returns nil.
func wait(t *testing.T, ok func() error) {
	t.Helper()
	for from := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := ok()
		if err == nil {
			return
		}
		if time.Since(from) > patience {
			t.Fatal(err)
		}
	}
}

func (r *recorder) everCooled(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cooled[text]
}

// The set is lost, and the owners write their parts again one after the other. Until then readers
// keep their entries, whatever they read, and no owner removes an entry that another is about to
// write.
func TestPoisonedSetIsHeldMeanwhile(t *testing.T) {
	for _, key := range []string{testLayout.Hot, testLayout.Info} {
		t.Run(key, func(t *testing.T) {
			onBoth(t, func(t *testing.T, client redis.UniversalClient) {
				ctx := t.Context()
				first := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-0" })
				second := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
				first.Publish(hots(hot("steady", 100, 50)))
				must(t, first.settle(ctx))
				must(t, second.settle(ctx))
				r := newRecorder()
				w := testWatcher(t, client, r)
				w.cfg.Timeout = patience
				look := func(want ...string) {
					t.Helper()
					must(t, w.compare(ctx))
					if got := r.now(); !has(want...)(got) || r.everCooled("steady") {
						t.Fatalf("%v is hot at the watcher, want %q", got, want)
					}
				}
				look("steady")
				must(t, client.Del(ctx, key).Err())
				must(t, client.RPush(ctx, key, "x").Err())
				look("steady") // before it is repaired
				second.Publish(hots(hot("other", 100, 50)))
				must(t, second.settle(ctx))
				must(t, client.Del(ctx, testLayout.Events).Err()) // the whole set has to be read
				look("steady", "other")
				must(t, second.renew(ctx))
				must(t, second.prune(ctx))
				look("steady", "other")
				must(t, first.renew(ctx))
				look("steady", "other")
				wantInRedis(t, client, map[string]int64{"steady": 50, "other": 50})
				if one, other := first.Stats(), second.Stats(); one.Healed == other.Healed {
					t.Errorf("healed: %v and %v, want one of them", one.Healed, other.Healed)
				}
			})
		})
	}
}
