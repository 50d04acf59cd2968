package hotkeys

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func suspect(texts ...string) []published.Hot {
	var suspects []published.Hot
	for i, text := range texts {
		h := hot(text, float64(100+i), 0)
		h.High = published.Unknown
		suspects = append(suspects, h)
	}
	return suspects
}

func heard(ages map[string]time.Duration) []published.Instance {
	var instances []published.Instance
	for name, age := range ages {
		instances = append(instances, published.Instance{Name: name, Heard: time.Now().Add(-age)})
	}
	return instances
}

func (f *follower) wantFleet(instances int, suspects ...string) {
	f.t.Helper()
	if got := f.r.fleet; got.Instances != instances || !slices.Equal(texts(got), suspects) {
		f.t.Fatalf("%d instances and suspects %q, want %d and %q", got.Instances, texts(got), instances, suspects)
	}
}

func (f *follower) renew() { f.t.Helper(); must(f.t, f.p.renew(context.Background())) }
func (f *follower) tell()  { f.t.Helper(); must(f.t, f.p.writeSuspects(context.Background())) }

// listened subscribes to the channel. Its next returns the next message.
func listened(t *testing.T, client redis.UniversalClient) (next func() string) {
	t.Helper()
	sub := client.Subscribe(context.Background(), testLayout.Changed)
	t.Cleanup(func() { sub.Close() })
	if _, err := sub.Receive(context.Background()); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		msg, err := sub.ReceiveMessage(ctx)
		must(t, err)
		return msg.Payload
	}
}

// The test checks what suspects and instances write to Redis, key by key, as any reader sees it.
func TestFleetLayout(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		before := version(t, client)
		next := listened(t, client)
		f.p.Instances(heard(map[string]time.Duration{"api-1": time.Second, "api-2": 0, "gone": 11 * time.Second, "not a name": 0}))
		f.p.Suspects(0, suspect("GET /b", "GET /a"))
		f.renew()

		if got := client.ZRangeWithScores(ctx, "hotparam:{shop}:suspects", 0, -1).Val(); len(got) != 2 ||
			got[0] != (redis.Z{Member: "search-terms GET /b", Score: 100}) || got[1] != (redis.Z{Member: "search-terms GET /a", Score: 101}) {
			t.Errorf("suspects: %v", got)
		}
		instances := client.ZRangeWithScores(ctx, "hotparam:{shop}:instances", 0, -1).Val()
		now := client.Time(ctx).Val()
		if len(instances) != 2 || instances[0].Member != "api-1" || instances[1].Member != "api-2" {
			t.Fatalf("instances: %v, want api-1 and api-2, who was heard last", instances)
		}
		for i, want := range []time.Duration{time.Second, 0} {
			if age := now.Sub(time.UnixMilli(int64(instances[i].Score))); age < want-time.Millisecond || age > want+patience/4 {
				t.Errorf("%s was heard %v ago, want %v", instances[i].Member, age, want)
			}
		}
		beat := client.Get(ctx, "hotparam:{shop}:beat").Val()
		parsed, err := published.ParseBeat([]byte(beat))
		if err != nil || parsed.Instances != 2 || len(parsed.Suspects) != 40 {
			t.Errorf("beat: %s, %v", beat, err)
		}
		for _, key := range []string{"suspects", "suspects:statsd", "instances", "beat"} {
			if ttl := client.PTTL(ctx, "hotparam:{shop}:"+key).Val(); ttl <= 0 || ttl > 10*time.Second {
				t.Errorf("%s lasts %v, want an end", key, ttl)
			}
		}
		push := next()
		want := fmt.Sprintf(`{"version":"%s","fleet":{"instances":2,"was":"","suspects":"%s","new":["search-terms GET /b","search-terms GET /a"],"over":[]}}`, before, parsed.Suspects)
		if strings.ReplaceAll(push, `\/`, "/") != want { // the same to JSON
			t.Errorf("pushed\n%s, want\n%s", push, want)
		}
		if v := version(t, client); v != before {
			t.Errorf("version %s became %s", before, v)
		}
		// A reader older than suspects sees a version that it already has.
		var old struct {
			Version string
			At      int64
			Hot     []any
			Cool    []string
		}
		if err := json.Unmarshal([]byte(push), &old); err != nil || old.Version != before || old.At != 0 || old.Hot != nil || old.Cool != nil {
			t.Errorf("an old reader sees %+v, %v", old, err)
		}

		f.push(push)
		f.wantFleet(2, "GET /a", "GET /b")
		f.want(1)
		told := f.r.fleets
		f.push(push)
		f.poll()
		f.renew() // other rates, the same suspects
		f.poll()
		if f.r.fleets != told {
			t.Errorf("told %d times of nothing new", f.r.fleets-told)
		}
		if s := f.w.Stats(); s.Instances != 2 || s.Suspects != 2 {
			t.Errorf("%+v", s)
		}
		if s := f.p.Stats(); s.Instances != 2 || s.Suspects != 2 {
			t.Errorf("%+v", s)
		}
	})
}

func TestListFleet(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		p := testPublisher(t, client, nil)
		p.Suspects(0, suspect("b", "c", "a"))
		p.Instances(heard(map[string]time.Duration{"api-2": 0, "api-10": time.Second, "api-1": 9 * time.Second}))
		must(t, p.renew(ctx))
		must(t, client.ZAdd(ctx, testLayout.Instances, redis.Z{Member: "over", Score: 1}).Err())
		suspects, err := ListSuspects(ctx, client, testNamespace)
		must(t, err)
		if len(suspects) != 3 || suspects[0].Text != "a" || suspects[0].Rate != 102 || suspects[2].Text != "b" || suspects[2].Rule != "search-terms" {
			t.Errorf("suspects: %+v", suspects)
		}
		instances, err := ListInstances(ctx, client, testNamespace)
		must(t, err)
		if len(instances) < 2 || instances[len(instances)-2].Name != "api-10" || instances[len(instances)-1].Name != "api-2" {
			t.Fatalf("instances: %+v", instances)
		}
		if age := time.Since(instances[len(instances)-2].Heard); age < time.Second-time.Millisecond || age > instanceLife {
			t.Errorf("api-10 was heard %v ago, want 1s", age)
		}
		for _, list := range []func() error{
			func() error { _, err := ListSuspects(ctx, client, "a b"); return err },
			func() error { _, err := ListInstances(ctx, client, "a b"); return err },
		} {
			if list() == nil {
				t.Error("a bad namespace was taken")
			}
		}
	})
}

// A part replaces its former content, the poll finds changes that no push announced, and all
// knowledge ends with the heartbeat.
func TestFleetFollowed(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		next := listened(t, client)
		f.p.Suspects(0, suspect("a", "b"))
		f.p.Suspects(1, suspect("c"))
		f.tell()
		f.push(next())
		f.wantFleet(0, "a", "b", "c")
		f.p.Suspects(0, suspect("b"))
		f.p.Suspects(1, nil)
		f.p.Instances(heard(map[string]time.Duration{"api-1": 0}))
		f.renew()
		push := next()
		f.push(push)
		f.wantFleet(1, "b")

		f.p.Suspects(2, suspect("d")) // its push is lost
		f.tell()
		f.poll()
		f.wantFleet(1, "b", "d")
		f.push(push) // an earlier push: its errors last until the poll
		f.poll()
		f.wantFleet(1, "b", "d")
		next()
		f.p.Suspects(2, nil)
		f.p.Suspects(0, nil)
		f.renew()
		next()
		f.poll()
		f.wantFleet(1)

		// Another owner's suspects and instances add to ours. Each fades with its owner.
		other := testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "kafka-1" })
		other.Suspects(0, suspect("x", "b"))
		other.Instances(heard(map[string]time.Duration{"api-1": 5 * time.Second, "api-2": 0}))
		must(t, other.renew(ctx))
		f.p.Suspects(0, suspect("b"))
		f.tell()
		f.poll()
		f.wantFleet(2, "b", "x")
		if heard := client.ZScore(ctx, testLayout.Instances, "api-1").Val(); client.Time(ctx).Val().Sub(time.UnixMilli(int64(heard))) > 4*time.Second {
			t.Error("an older word of api-1 took the place of the newer one")
		}
		must(t, client.Del(ctx, testLayout.Suspects+":kafka-1").Err()) // as if it had expired
		f.renew()
		f.poll()
		f.wantFleet(2, "b")
	})
}

func TestFleetFadesWithTheHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		p := testPublisher(t, client, nil)
		r := newRecorder()
		defer testenv.Running(t, testWatcher(t, client, r).Run)()
		stop := testenv.Running(t, p.Run)
		r.awaitFleet(t, "nothing yet", 0)
		p.Instances(heard(map[string]time.Duration{"api-1": -time.Hour, "api-2": 2 * time.Second}))
		r.awaitFleet(t, "the instances", 2)
		from := time.Now()
		p.Suspects(0, suspect("a"))
		synctest.Wait()
		r.awaitFleet(t, "a suspect", 2, "a")
		if took := time.Since(from); took > 0 {
			t.Errorf("a new suspect was told after %v, want at once", took)
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		r.awaitFleet(t, "api-2 before its end", 2, "a")
		r.awaitFleet(t, "the end of api-2", 1, "a")
		if took := time.Since(from); took < 7*time.Second || took > 10*time.Second {
			t.Errorf("api-2 counts %v after its last word but two seconds, want 8s and what renewal and poll take", took)
		}
		stop()
		died := time.Now()
		r.awaitFleet(t, "the end", 0)
		if took := time.Since(died); took < 3*time.Second || took > 5*time.Second {
			t.Errorf("faded after %v, want at most the heartbeat's 5s", took)
		}
		time.Sleep(10 * time.Second)
		if keys := client.Keys(context.Background(), "*suspects*").Val(); len(keys) != 0 {
			t.Errorf("left in Redis: %q", keys)
		}
	})
}

// A process that was paused while another took its part publishes nothing more. Everything its
// predecessor published is replaced.
func TestFleetIsFenced(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		f := newFollower(t, client)
		f.p.Suspects(0, suspect("old"))
		f.p.Instances(heard(map[string]time.Duration{"api-1": 0}))
		f.renew()
		successor := testPublisher(t, client, nil)
		successor.Suspects(0, suspect("new"))
		must(t, successor.renew(context.Background()))
		f.p.Suspects(0, suspect("older"))
		f.p.Instances(heard(map[string]time.Duration{"api-7": 0}))
		f.tell()
		if s := f.p.Stats(); s.FencedBy == "" || s.Suspects != 0 {
			t.Errorf("%+v", s)
		}
		f.renew()
		f.poll()
		f.wantFleet(1, "new")
	})
}

// If another writer's entry is among the suspects, a watcher takes it for one. It reads the
// suspects again until they equal the publishers'.
func TestForeignSuspectsAreReadAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		f := newFollower(t, client)
		f.p.Suspects(0, suspect("a"))
		f.p.Instances(heard(map[string]time.Duration{"api-1": 0}))
		f.renew()
		must(t, client.ZAdd(t.Context(), testLayout.Suspects, redis.Z{Score: 7, Member: hot("foreign", 1, 1).Key.String()}).Err())
		f.poll()
		f.wantFleet(1, "a", "foreign")
		f.renew()
		f.poll()
		f.wantFleet(1, "a")
	})
}

func TestFleetIsBounded(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		ctx := context.Background()
		f := newFollower(t, client)
		next := listened(t, client)
		var many []published.Hot
		for i := range 3 * published.MaxSuspects / 2 {
			many = append(many, hot(fmt.Sprintf("GET /search?q=%0100d", i), float64(i), 50))
		}
		f.p.Suspects(0, many)
		f.p.Suspects(1, suspect("a"))
		var instances []published.Instance
		for i := range 2*maxHeartbeats + 7 {
			instances = append(instances, published.Instance{Name: fmt.Sprint("api-", i), Heard: time.Now()})
		}
		f.p.Instances(instances)
		f.renew()
		if n := client.ZCard(ctx, testLayout.Instances).Val(); n != int64(len(instances)) {
			t.Errorf("%d instances, want %d", n, len(instances))
		}
		if n := client.ZCard(ctx, testLayout.Suspects).Val(); n != published.MaxSuspects {
			t.Errorf("%d suspects, want %d", n, published.MaxSuspects)
		}
		if s := f.p.Stats(); s.Suspects != published.MaxSuspects || s.SuspectsOverflow != published.MaxSuspects/2+1 || s.Instances != len(instances) {
			t.Errorf("%+v", s)
		}
		pushes := 0
		for len(f.w.state.fleet.suspects) < published.MaxSuspects {
			push := next()
			if len(push) > published.MaxPush {
				t.Fatalf("a push of %d bytes", len(push))
			}
			f.push(push)
			pushes++
		}
		if pushes < 2 || pushes > 3 || f.w.state.fleet.digest != unsure {
			t.Errorf("%d pushes, digest %q: want some parts, and the poll to tell the rest", pushes, f.w.state.fleet.digest)
		}
		f.poll()
		if n := len(f.r.fleet.Suspects); n != published.MaxSuspects || f.w.state.fleet.digest == unsure || f.r.fleet.Instances != len(instances) {
			t.Errorf("%d suspects of %d instances", n, f.r.fleet.Instances)
		}
		p := testPublisher(t, client, nil)
		p.Suspects(0, []published.Hot{hot("GET /\xff", 1, 1), hot("GET /", -1, 1)})
		if s := p.Stats(); s.Refused != 2 || len(p.suspect) != 0 {
			t.Errorf("%+v: want what no watcher reads refused", s)
		}
	})
}

// Suspects and instances that Redis lost are written again by the next renewal.
func TestFleetSurvivesRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	p := testPublisher(t, client, nil)
	r := newRecorder()
	defer testenv.Running(t, testWatcher(t, testClient(t, server.URL()), r).Run)()
	defer testenv.Running(t, p.Run)()
	p.Instances(heard(map[string]time.Duration{"api-1": -patience, "api-2": -patience}))
	for i, trouble := range []func(){func() {}, server.Flush, server.Restart, func() { client.ScriptFlush(t.Context()) }, func() { client.Del(t.Context(), testLayout.Beat) }} {
		trouble()
		name := fmt.Sprint("suspect ", i)
		p.Suspects(0, suspect(name))
		r.awaitFleet(t, fmt.Sprint("after trouble ", i), 2, name)
	}
}

// A publisher may publish nothing about the fleet, as older ones do.
func TestFleetOfAnOldPublisher(t *testing.T) {
	onBoth(t, func(t *testing.T, client redis.UniversalClient) {
		f := newFollower(t, client)
		f.p.Instances(heard(map[string]time.Duration{"api-1": 0}))
		f.p.Suspects(0, suspect("a"))
		f.renew()
		f.poll()
		f.wantFleet(1, "a")
		must(t, client.Set(context.Background(), testLayout.Beat, "statsd", 5*time.Second).Err())
		f.poll()
		f.wantFleet(0)
		f.want(1)
	})
}

// The rules share the places of published suspects. Rules that count bytes leave room for rules
// that count requests, within one part of the aggregator and over all parts.
func TestRulesShareTheSuspects(t *testing.T) {
	of := func(rule string, n int, ratio float64) (suspects []published.Hot) {
		for i := range n {
			h := hot(text(i), ratio*1e6, 50)
			h.Rule, h.Ratio = rule, ratio
			suspects = append(suspects, h)
		}
		return suspects
	}
	files, terms := of("files", 1500, 0.9), of("terms", 300, 0.8)
	for name, parts := range map[string][][]published.Hot{
		"one part":  {append(files, terms...)},
		"two parts": {files, terms},
	} {
		s := newSuspected([]string{"files", "terms"})
		for i, part := range parts {
			s.replace(i, part)
		}
		told := make(map[string]int)
		for i, arg := range s.appendTop(nil) {
			if member, ok := arg.(string); ok && i%2 == 0 {
				rule, _, _ := strings.Cut(member, " ")
				told[rule]++
			}
		}
		if told["files"] != published.MaxSuspects-300 || told["terms"] != 300 {
			t.Errorf("%s: %v, want all terms", name, told)
		}
	}
}
