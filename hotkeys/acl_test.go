package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
)

func allow(t *testing.T, admin redis.UniversalClient, words []any, commands ...string) {
	t.Helper()
	args := slices.Insert(slices.Clone(words), 3, any("reset")) // as if the user were new
	for _, command := range commands {
		args = append(args, command)
	}
	must(t, everywhere(t.Context(), admin, func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, args...).Err() }))
}

// everywhere calls do for each server. A cluster's client does not know the replicas at first.
func everywhere(ctx context.Context, client redis.UniversalClient, do func(context.Context, *redis.Client) error) error {
	c, ok := client.(*redis.ClusterClient)
	if !ok {
		return do(ctx, client.(*redis.Client))
	}
	for _, addr := range c.Options().Addrs {
		node, err := NewClient("redis://" + addr)
		if err == nil {
			err = do(ctx, node.(*redis.Client))
			err = errors.Join(err, node.Close())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func userURL(t *testing.T, url, user string) ClientConfig {
	t.Helper()
	t.Setenv("TEST_REDIS_PASSWORD", "PASSWORD")
	return ClientConfig{URL: url, Username: user, PasswordEnv: "TEST_REDIS_PASSWORD"}
}

// asReader does everything that instances do, and returns what failed.
func asReader(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	p := testPublisher(t, admin, nil)
	p.Publish(hots(hot(text(1), 100, 50)))
	p.Suspects(0, []published.Hot{hot(text(2), 90, 50)})
	p.Instances([]published.Instance{{Name: "api-1", Heard: time.Now()}})
	must(t, p.settle(ctx))
	must(t, p.renew(ctx))
	w := testWatcher(t, client, newRecorder())
	w.poller.timeout = patience
	failed := []error{w.poll(ctx)}
	p.Publish(hots(hot(text(3), 100, 50)))
	must(t, p.settle(ctx))
	failed = append(failed, w.poll(ctx)) // from the stream
	for _, e := range w.state.entries {
		e.hot.Until = time.Now()
	}
	failed = append(failed, w.renew(ctx))
	if n := w.Stats().Foreign; n > 0 {
		failed = append(failed, fmt.Errorf("%d times something could not be read", n))
	}
	_, err := List(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = ListSuspects(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = ListInstances(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = CarryOut(ctx, admin, testNamespace, ControlOrder{Key: hot(text(1), 1, 1).Key, Action: published.ControlBlock, For: time.Hour})
	must(t, err)
	controls, err := NewControlWatcher(client, WatcherConfig{Namespace: testNamespace, Timeout: patience}, &controlRecorder{})
	must(t, err)
	failed = append(failed, controls.checkMark(ctx, true), beatAs(t, admin, client))
	_, err = ListMembers(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = readControlEvents(ctx, client, testLayout, "", 10)
	failed = append(failed, err)
	invalidator, _ := newTestInvalidator(t, client, WatcherConfig{Timeout: patience})
	failed = append(failed, invalidator.read(ctx, true))
	sub := client.Subscribe(ctx, testLayout.Changed, testLayout.Control, testLayout.Invalidation)
	defer sub.Close()
	for range 3 {
		if _, err = sub.ReceiveTimeout(ctx, patience); err != nil {
			break
		}
	}
	failed = append(failed, err)
	if err == nil {
		must(t, sub.Ping(ctx))
		_, err = sub.ReceiveTimeout(ctx, patience)
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// asWriter does everything that an aggregator does, and returns what failed.
func asWriter(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	for _, key := range append(ownerKeys(testLayout, "statsd"), testLayout.Suspects+":other") {
		must(t, admin.Del(ctx, key).Err())
	}
	must(t, admin.XAdd(ctx, &redis.XAddArgs{Stream: testLayout.Events, ID: "1000-0", Values: []string{"version", "old:1", "change", "{}"}}).Err())
	flushScripts(t, admin)
	p := testPublisher(t, client, nil)
	_, _, err := p.Adopt(ctx)
	failed := []error{err}
	step := func(change published.Change, do func(context.Context) error) {
		p.Publish(change)
		failed = append(failed, do(ctx))
	}
	p.Suspects(0, []published.Hot{hot(text(9), 90, 50)})
	p.Instances([]published.Instance{{Name: "api-1", Heard: time.Now()}})
	step(hots(hot(text(1), 100, 50), hot(text(2), 100, 50)), p.settle)
	step(cools(hot(text(2), 100, 50)), p.settle)
	step(published.Change{}, p.renew)
	step(published.Change{}, p.renew)
	step(published.Change{}, p.writeSuspects)
	_, err = p.LoadSnapshot(ctx)
	failed = append(failed, p.SaveSnapshot(ctx, []byte("x"), time.Minute), err)
	must(t, admin.ZAdd(ctx, testLayout.Hot, redis.Z{Member: "over", Score: 1}).Err())
	defer func() { must(t, admin.ZRem(ctx, testLayout.Hot, "over").Err()) }() // a user without the right leaves the entry there
	step(published.Change{}, p.prune)
	p.strange = map[string]time.Time{"over": {}} // unreadable for long
	step(published.Change{}, p.prune)
	step(published.Change{}, p.trim)
	p.reclaim, p.rewrite = true, true
	step(published.Change{}, p.settle)
	adopted, _, err := testPublisher(t, client, nil).Adopt(ctx)
	failed = append(failed, err)
	leased := testPublisher(t, client, func(c *PublisherConfig) { c.Owner, c.Lease = "other", 2*patience })
	failed = append(failed, leased.settle(ctx), leased.keepClaim(ctx), leased.release(ctx), beatAs(t, admin, client))
	must(t, admin.Del(ctx, testLayout.Control).Err())
	_, err = CarryOut(ctx, admin, testNamespace, ControlOrder{Key: hot(text(1), 1, 1).Key, Action: published.ControlBlock, For: time.Hour})
	must(t, err)
	_, err = ListControls(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = ListMembers(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = client.TxPipelined(ctx, func(tx redis.Pipeliner) error { // like its page and its webhook
		tx.PTTL(ctx, testLayout.Beat)
		tx.XRevRangeN(ctx, testLayout.Events, "+", "-", 1)
		tx.HSet(ctx, testLayout.Webhook, "holder", "x")
		return nil
	})
	failed = append(failed, err)
	if err := errors.Join(failed...); err != nil {
		return err
	}
	if why := p.Stats().Trouble; why != "" {
		return errors.New(why)
	}
	if old := admin.XRange(ctx, testLayout.Events, "1000-0", "1000-0").Val(); len(old) != 0 {
		return errors.New("the stream was not trimmed")
	}
	if len(adopted) != 1 || p.Stats().Pruned != 1 {
		return fmt.Errorf("adopted %v, %+v", adopted, p.Stats())
	}
	return nil
}

func flushScripts(t *testing.T, admin redis.UniversalClient) {
	t.Helper()
	must(t, everywhere(t.Context(), admin, func(ctx context.Context, node *redis.Client) error { return node.Do(ctx, "SCRIPT", "FLUSH").Err() }))
}

// beatAs writes a heartbeat that repairs and forgets, and leaves.
func beatAs(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	must(t, admin.Del(ctx, testLayout.MembersVersions, testLayout.MembersInfo, testLayout.Members).Err())
	must(t, admin.ZAdd(ctx, testLayout.Members, redis.Z{Score: 1, Member: "gone 1"}).Err())
	flushScripts(t, admin)
	h, err := NewHeartbeat(client, HeartbeatConfig{Namespace: testNamespace, Timeout: patience, Member: func() published.Member {
		return published.Member{Name: "api-1", Role: published.RoleInstance, RulesVersion: "v1"}
	}})
	must(t, err)
	h.beat(ctx)
	if s := h.Stats(); s.Sent != 1 {
		return fmt.Errorf("heartbeat: %+v", s)
	}
	h.leave(ctx)
	if n := admin.HLen(ctx, testLayout.MembersInfo).Val() + admin.ZCard(ctx, testLayout.Members).Val(); n != 0 {
		return fmt.Errorf("%d members after the last has left", n)
	}
	return nil
}

// asOperator does everything that hotparam pin, block, allow, release and top do, and returns what
// failed.
func asOperator(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	must(t, admin.Del(ctx, testLayout.ControlEvents).Err())
	flushScripts(t, admin)
	must(t, admin.Set(ctx, testLayout.Control, "foreign", 0).Err())
	key := hot(text(1), 1, 1).Key
	set, err := CarryOut(ctx, client, testNamespace, ControlOrder{Key: key, Action: published.ControlPin, For: time.Hour})
	failed := []error{err}
	if err == nil && set.By != "hotparam-operator" {
		failed = append(failed, fmt.Errorf("by %q", set.By))
	}
	_, err = List(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = ListControls(ctx, client, testNamespace)
	failed = append(failed, err)
	_, err = client.TxPipelined(ctx, func(tx redis.Pipeliner) error { // like top
		tx.ZCard(ctx, testLayout.Instances)
		tx.XRevRangeN(ctx, testLayout.Events, "+", "-", 1)
		return nil
	})
	failed = append(failed, err)
	_, err = CarryOut(ctx, client, testNamespace, ControlOrder{Key: key})
	failed = append(failed, err)
	must(t, admin.Set(ctx, testLayout.Invalidation, "foreign", 0).Err())
	added, err := appendInvalidation(ctx, client, testLayout, &published.Invalidation{All: true})
	if !added {
		failed = append(failed, errors.New("no invalidation was added"))
	}
	return errors.Join(append(failed, err)...)
}

// asInvalidator does everything by which instances invalidate each other's answers, and returns what
// failed.
func asInvalidator(t *testing.T, admin, client redis.UniversalClient) error {
	ctx := t.Context()
	must(t, admin.Set(ctx, testLayout.Invalidation, "foreign", 0).Err())
	sub := admin.Subscribe(ctx, testLayout.Invalidation)
	defer sub.Close()
	_, err := sub.ReceiveTimeout(ctx, patience)
	must(t, err)
	v, _ := newTestInvalidator(t, client, WatcherConfig{Timeout: patience})
	v.Target(1)
	v.sendPending(ctx)
	if s := v.Stats(); s.Sent != 1 || s.Errors != 0 {
		return fmt.Errorf("%+v", s)
	}
	if ttl := admin.PTTL(ctx, testLayout.Invalidation).Val(); ttl <= 0 {
		return errors.New("the stream does not expire")
	}
	_, err = sub.ReceiveTimeout(ctx, patience)
	return err
}

// controlRecorder is a target that keeps the controls it was last given.
type controlRecorder struct {
	mu  sync.Mutex
	got []published.Control
}

func (r *controlRecorder) SetControls(controls []published.Control) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = controls
}

func (r *controlRecorder) all() []published.Control {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// Everything works with the documented rights, and none of them is superfluous.
func TestLeastRights(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	for user, act := range map[string]func(t *testing.T, admin, client redis.UniversalClient) error{
		"hotparam-reader":      asReader,
		"hotparam-writer":      asWriter,
		"hotparam-operator":    asOperator,
		"hotparam-invalidator": asInvalidator,
	} {
		t.Run(user, func(t *testing.T) {
			words, commands := testenv.DocumentedRights(t, user)
			try := func(commands ...string) error {
				allow(t, admin, words, commands...)
				return act(t, admin, clientOf(t, userURL(t, server.URL(), user)))
			}
			if err := try(commands...); err != nil {
				t.Fatalf("with all that is documented: %v", err)
			}
			for i, command := range commands {
				if try(slices.Delete(slices.Clone(commands), i, i+1)...) == nil {
					t.Errorf("%s is documented, and nothing needs it", command)
				}
			}
		})
	}
}

// If Redis is run in another way, the documentation names one more right.
func TestLeastRightsElsewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	for _, test := range []struct{ name, more, url string }{
		{"cluster", "+cluster|slots", testenv.RedisCluster(t).URL()},
		{"database", "+select", testenv.Redis(t).URL() + "?db=3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			admin := testClient(t, test.url)
			for user, act := range map[string]func(t *testing.T, admin, client redis.UniversalClient) error{
				"hotparam-reader": asReader,
				"hotparam-writer": asWriter,
			} {
				words, commands := testenv.DocumentedRights(t, user)
				allow(t, admin, words, append(commands, test.more)...)
				if err := act(t, admin, clientOf(t, userURL(t, test.url, user))); err != nil {
					t.Errorf("%s with %s: %v", user, test.more, err)
				}
				allow(t, admin, words, commands...)
				if act(t, admin, clientOf(t, userURL(t, test.url, user))) == nil {
					t.Errorf("%s: nothing needs %s", user, test.more)
				}
			}
			if text, err := os.ReadFile("../docs/REDIS.md"); err != nil || !strings.Contains(string(text), "`"+test.more+"`") {
				t.Errorf("docs/REDIS.md does not name %s (%v)", test.more, err)
			}
		})
	}
}

// Sentinels and Redis have their own users and passwords. The sentinels' user has the documented
// rights.
func TestSentinelUsers(t *testing.T) {
	set := testenv.RedisSentinel(t)
	admin := testClient(t, set.PrimaryServer().URL())
	words, commands := testenv.DocumentedRights(t, "hotparam-sentinel")
	for _, addr := range set.Addrs() {
		sentinel := testClient(t, "redis://"+addr)
		allow(t, sentinel, words, commands...)
		must(t, sentinel.Do(t.Context(), "ACL", "SETUSER", "default", "off").Err())
	}
	words, commands = testenv.DocumentedRights(t, "hotparam-reader")
	allow(t, admin, words, commands...)
	config := userURL(t, set.URL(), "hotparam-reader")
	config.SentinelUsername, config.SentinelPasswordEnv = "hotparam-sentinel", "TEST_REDIS_PASSWORD"
	if err := asReader(t, admin, clientOf(t, config)); err != nil {
		t.Error(err)
	}
	t.Setenv("TEST_WRONG_PASSWORD", "hunter2")
	config.SentinelPasswordEnv = "TEST_WRONG_PASSWORD"
	if err := clientOf(t, config).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("wrong password: %v", err)
	}
}

// A reader cannot change anything, and neither user can access another namespace.
func TestRightsEndAtTheNamespace(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	ctx := t.Context()
	for _, user := range []string{"hotparam-reader", "hotparam-writer"} {
		words, commands := testenv.DocumentedRights(t, user)
		allow(t, admin, words, commands...)
		client := clientOf(t, userURL(t, server.URL(), user))
		for what, err := range map[string]error{
			"another key":      client.Get(ctx, "hotparam:{other}:version").Err(),
			"another channel":  subscribeError(ctx, client, "hotparam:{other}:changed"),
			"another set":      listError(ctx, client, "other"),
			"all keys":         client.Keys(ctx, "*").Err(),
			"a flush":          client.FlushAll(ctx).Err(),
			"its own commands": client.Do(ctx, "ACL", "LIST").Err(),
		} {
			if err == nil || !strings.Contains(err.Error(), "NOPERM") {
				t.Errorf("%s: %s: %v, want NOPERM", user, what, err)
			}
		}
		_, _, err := testPublisher(t, client, nil).Adopt(ctx)
		if reader := user == "hotparam-reader"; reader != (err != nil && strings.Contains(err.Error(), "NOPERM")) {
			t.Errorf("%s: write: %v", user, err)
		}
	}
}

// Only an operator can write the controls. No other user's attempts change them.
func TestControlsAreTheOperators(t *testing.T) {
	server := testenv.Redis(t)
	admin := testClient(t, server.URL())
	ctx := t.Context()
	key := hot(text(1), 1, 1).Key
	_, err := CarryOut(ctx, admin, testNamespace, ControlOrder{Key: key, Action: published.ControlPin, For: time.Hour})
	must(t, err)
	before := admin.HGetAll(ctx, testLayout.Control).Val()
	for _, user := range []string{"hotparam-reader", "hotparam-writer", "hotparam-limiter", "hotparam-invalidator"} {
		words, commands := testenv.DocumentedRights(t, user)
		allow(t, admin, words, append(commands, "+acl|whoami")...)
		client := clientOf(t, userURL(t, server.URL(), user))
		_, setErr := CarryOut(ctx, client, testNamespace, ControlOrder{Key: key, Action: published.ControlBlock, For: time.Hour})
		_, releaseErr := CarryOut(ctx, client, testNamespace, ControlOrder{Key: key})
		for what, err := range map[string]error{
			"set":     setErr,
			"release": releaseErr,
			"del":     client.Del(ctx, testLayout.Control).Err(),
			"expire":  client.PExpire(ctx, testLayout.Control, time.Millisecond).Err(),
			"hset":    client.HSet(ctx, testLayout.Control, key.String(), "{}").Err(),
			"hdel":    client.HDel(ctx, testLayout.Control, key.String()).Err(),
			"string":  client.Set(ctx, testLayout.Control, "x", 0).Err(),
			"zset":    client.ZAdd(ctx, testLayout.Control, redis.Z{Member: "x"}).Err(),
			"union":   client.ZUnionStore(ctx, testLayout.Control, &redis.ZStore{Keys: []string{testLayout.Hot}}).Err(),
			"script":  client.Eval(ctx, "return redis.call('DEL', KEYS[1])", []string{testLayout.Control}).Err(),
			"hidden":  client.Eval(ctx, "return redis.call('DEL', ARGV[1])", nil, testLayout.Control).Err(),
			"stream":  client.XAdd(ctx, &redis.XAddArgs{Stream: testLayout.ControlEvents, Values: []string{"change", "{}"}}).Err(),
			"push":    client.Publish(ctx, testLayout.Control, "{}").Err(),
		} {
			if !IsDenied(err) {
				t.Errorf("%s: %s: %v, want NOPERM", user, what, err)
			}
		}
	}
	if after := admin.HGetAll(ctx, testLayout.Control).Val(); !maps.Equal(before, after) {
		t.Errorf("the controls are %v, were %v", after, before)
	}
}

func subscribeError(ctx context.Context, client redis.UniversalClient, channel string) error {
	sub := client.Subscribe(ctx, channel)
	defer sub.Close()
	_, err := sub.ReceiveTimeout(ctx, patience)
	return err
}

func listError(ctx context.Context, client redis.UniversalClient, namespace string) error {
	_, err := List(ctx, client, namespace)
	return err
}
