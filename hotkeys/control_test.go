package hotkeys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

func order(n int, action published.ControlAction, span time.Duration) ControlOrder {
	return ControlOrder{Key: rules.Key{Rule: "search", Text: text(n)}, Action: action, For: span, Why: "because", Claimed: "ann@laptop"}
}

// startControls runs a watcher until the test ends.
func startControls(t *testing.T, client redis.UniversalClient, cfg WatcherConfig) (*ControlWatcher, *controlRecorder) {
	t.Helper()
	cfg.Namespace = testNamespace
	target := &controlRecorder{}
	w, err := NewControlWatcher(client, cfg, target)
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
		if n := len(target.all()); n > 0 {
			t.Errorf("%d controls are in force after Run", n)
		}
	})
	return w, target
}

// within waits until ok returns true, and returns how long that took.
func within(t *testing.T, what string, longest time.Duration, ok func() bool) time.Duration {
	t.Helper()
	return testenv.Within(t, longest, what, ok)
}

func (r *controlRecorder) words() string {
	var words []string
	for _, c := range r.all() {
		words = append(words, string(c.Action)+" "+c.Text)
	}
	return strings.Join(words, ", ")
}

// Operators' controls are in the list, in the stream, and at every follower, pushed or not.
func TestControls(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := t.Context()
	w, pushed := startControls(t, client, WatcherConfig{Poll: time.Hour})
	_, polled := startControls(t, client, WatcherConfig{Poll: 20 * time.Millisecond})
	within(t, "a subscription", patience, func() bool { return w.Stats().Connected })

	set, err := CarryOut(ctx, client, testNamespace, order(1, published.ControlBlock, time.Hour))
	must(t, err)
	if left := time.Until(set.Until); set.By != "default" || set.Claimed != "ann@laptop" || left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("%+v", set)
	}
	_, err = CarryOut(ctx, client, testNamespace, order(2, published.ControlAllow, time.Hour))
	must(t, err)
	_, err = CarryOut(ctx, client, testNamespace, order(1, published.ControlPin, 30*time.Minute)) // in place of the block
	must(t, err)
	wanted := "pin " + text(1) + ", allow " + text(2)
	for what, target := range map[string]*controlRecorder{"pushed": pushed, "polled": polled} {
		within(t, what, patience, func() bool { return target.words() == wanted })
	}
	listed, err := ListControls(ctx, client, testNamespace)
	must(t, err)
	if len(listed) != 2 || listed[0].Why != "because" || !listed[0].Until.Before(set.Until) {
		t.Errorf("%+v", listed)
	}

	released, err := CarryOut(ctx, client, testNamespace, ControlOrder{Key: order(2, "", 0).Key, Why: "it is over", Claimed: "bob"})
	must(t, err)
	if released.Action != published.ControlAllow || released.Why != "it is over" || !released.Until.Equal(listed[1].Until) {
		t.Errorf("%+v", released)
	}
	if _, err := CarryOut(ctx, client, testNamespace, ControlOrder{Key: order(2, "", 0).Key}); !errors.Is(err, ErrNoControl) {
		t.Errorf("%v", err)
	}
	within(t, "a release", patience, func() bool { return pushed.words() == "pin "+text(1) && polled.words() == "pin "+text(1) })

	events, err := readControlEvents(ctx, client, testLayout, "", 10)
	must(t, err)
	var types []string
	for _, e := range events {
		word := string(e.Action)
		if e.Release {
			word = "release"
		}
		types = append(types, word)
		if age := time.Since(e.Since); age < -time.Minute || age > time.Minute || e.Control.By != "default" {
			t.Errorf("%+v", e)
		}
	}
	if want := []string{"block", "allow", "pin", "release"}; !slices.Equal(types, want) {
		t.Errorf("events %q, want %q", types, want)
	}
	later, err := readControlEvents(ctx, client, testLayout, events[1].ID, 10)
	must(t, err)
	if len(later) != 2 || later[0].ID != events[2].ID {
		t.Errorf("%+v after %s", later, events[1].ID)
	}
}

// A control ends on time, in Redis and on the instances that obey it. Its key in Redis expires with
// it.
func TestControlsEnd(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	_, target := startControls(t, client, WatcherConfig{})
	_, err := CarryOut(t.Context(), client, testNamespace, order(1, published.ControlBlock, 700*time.Millisecond))
	must(t, err)
	within(t, "in force", patience, func() bool { return len(target.all()) == 1 })
	server.Kill() // the control lasts to its end without Redis, and no longer
	if took := within(t, "over", patience, func() bool { return len(target.all()) == 0 }); took < 100*time.Millisecond {
		t.Errorf("over after %v", took)
	}
}

// A Redis that returns without the controls means that there are none. While it is unavailable they
// stay in force.
func TestLostControls(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	w, target := startControls(t, client, WatcherConfig{Poll: 50 * time.Millisecond})
	_, err := CarryOut(t.Context(), client, testNamespace, order(1, published.ControlBlock, time.Hour))
	must(t, err)
	within(t, "in force", patience, func() bool { return len(target.all()) == 1 })
	server.Kill()
	failures := w.Stats().Errors
	within(t, "an outage", patience, func() bool { return w.Stats().Errors > failures+3 })
	if len(target.all()) != 1 {
		t.Error("a control ended while Redis was away")
	}
	server.Restart()
	within(t, "the file alone", patience, func() bool { return len(target.all()) == 0 })
	_, err = CarryOut(t.Context(), client, testNamespace, order(2, published.ControlPin, time.Hour))
	must(t, err)
	within(t, "in force again", patience, func() bool { return target.words() == "pin "+text(2) })
}

// Foreign values leave the controls in force, and the next order repairs them. A single value that
// cannot be read is skipped.
func TestForeignControls(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := t.Context()
	w, target := startControls(t, client, WatcherConfig{Poll: 20 * time.Millisecond})
	set := func(n int) {
		t.Helper()
		_, err := CarryOut(ctx, client, testNamespace, order(n, published.ControlBlock, time.Hour))
		must(t, err)
	}
	set(1)
	within(t, "in force", patience, func() bool { return len(target.all()) == 1 })
	for what, spoil := range map[string]func() error{
		"a string": func() error { return client.Set(ctx, testLayout.Control, "x", 0).Err() },
		"a list": func() error {
			_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error { // in between there would be no controls
				p.Del(ctx, testLayout.Control)
				return p.RPush(ctx, testLayout.Control, "x").Err()
			})
			return err
		},
		"too many": func() error {
			_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
				for i := range 11 * published.MaxControls {
					p.HSet(ctx, testLayout.Control, fmt.Sprint("x", i), "{}")
				}
				return nil
			})
			return err
		},
	} {
		foreign := w.Stats().Foreign
		must(t, spoil())
		within(t, what, patience, func() bool { return w.Stats().Foreign > foreign })
		if len(target.all()) != 1 {
			t.Errorf("%s: %s", what, target.words())
		}
		set(1)
		if n := client.HLen(ctx, testLayout.Control).Val(); n != 2 {
			t.Errorf("%s: %d fields after the next order", what, n)
		}
	}
	must(t, client.Del(ctx, testLayout.ControlEvents).Err())
	must(t, client.Set(ctx, testLayout.ControlEvents, "x", 0).Err())
	must(t, client.HSet(ctx, testLayout.Control, "search x", "{}", "no-space", "{}", "search y", `{"action":"block","since":1,"until":99999999999999}`).Err())
	loads := w.Stats().Loads
	set(1) // without a new order the watcher would read nothing
	within(t, "unreadable ones", patience, func() bool { return w.Stats().Loads > loads && len(target.all()) == 1 })
	set(2)
	within(t, "and the next", patience, func() bool { return len(target.all()) == 2 })
	if n := client.HLen(ctx, testLayout.Control).Val(); n != 3 {
		t.Errorf("%d fields", n)
	}
}

// There is room for 1,000 keys. A control of one of them can still be replaced.
func TestManyControls(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := testClient(t, server.URL())
	ctx := t.Context()
	_, err := CarryOut(ctx, client, testNamespace, order(0, published.ControlBlock, time.Hour))
	must(t, err)
	value := client.HGet(ctx, testLayout.Control, order(0, "", 0).Key.String()).Val()
	_, err = client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := 1; i < published.MaxControls; i++ {
			p.HSet(ctx, testLayout.Control, order(i, "", 0).Key.String(), value)
		}
		return nil
	})
	must(t, err)
	if _, err := CarryOut(ctx, client, testNamespace, order(5000, published.ControlPin, time.Hour)); !errors.Is(err, ErrTooManyControls) {
		t.Errorf("%v", err)
	}
	_, err = CarryOut(ctx, client, testNamespace, order(7, published.ControlPin, time.Hour))
	must(t, err)
	_, target := startControls(t, client, WatcherConfig{})
	within(t, "all", patience, func() bool { return len(target.all()) == published.MaxControls })
	_, err = CarryOut(ctx, client, testNamespace, ControlOrder{Key: order(8, "", 0).Key})
	must(t, err)
	_, err = CarryOut(ctx, client, testNamespace, order(5000, published.ControlPin, time.Hour))
	must(t, err)
	start := time.Now()
	within(t, "one more", patience, func() bool {
		return slices.ContainsFunc(target.all(), func(c published.Control) bool { return c.Text == text(5000) })
	})
	t.Logf("in force after %v", time.Since(start))
}

// An invalid order is refused before Redis is asked.
func TestControlOrders(t *testing.T) {
	good := order(1, published.ControlBlock, time.Hour)
	for what, change := range map[string]func(*ControlOrder){
		"action":   func(o *ControlOrder) { o.Action = "stop" },
		"no end":   func(o *ControlOrder) { o.For = 0 },
		"too long": func(o *ControlOrder) { o.For = 25 * time.Hour },
		"rule":     func(o *ControlOrder) { o.Key.Rule = "No" },
		"no text":  func(o *ControlOrder) { o.Key.Text = "" },
		"text":     func(o *ControlOrder) { o.Key.Text = strings.Repeat("x", 600) },
		"why":      func(o *ControlOrder) { o.Why = strings.Repeat("x", 300) },
		"claim":    func(o *ControlOrder) { o.Claimed = strings.Repeat("x", 300) },
		"bytes":    func(o *ControlOrder) { o.Why = "\xff" },
	} {
		o := good
		change(&o)
		if _, err := CarryOut(t.Context(), nil, testNamespace, o); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
}

// Controls work on a cluster, where all keys of a script must be on one node.
func TestControlsOfACluster(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	client := testClient(t, testenv.RedisCluster(t).URL())
	w, target := startControls(t, client, WatcherConfig{})
	within(t, "a subscription", patience, func() bool { return w.Stats().Connected })
	_, err := CarryOut(t.Context(), client, testNamespace, order(1, published.ControlBlock, time.Hour))
	must(t, err)
	if took := within(t, "in force", patience, func() bool { return len(target.all()) == 1 }); took > time.Second {
		t.Logf("in force after %v", took)
	}
	if events, err := readControlEvents(t.Context(), client, testLayout, "", 10); err != nil || len(events) == 0 {
		t.Errorf("%v, %v", events, err)
	}
}

// Controls outlive a failover. A control that the old primary took and did not replicate is in
// force until there is a new primary. After that only the rules file applies to its key.
func TestControlsOutliveAFailover(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	set := testenv.RedisSentinel(t)
	client := testClient(t, set.URL())
	w, target := startControls(t, client, WatcherConfig{})
	within(t, "a subscription", patience, func() bool { return w.Stats().Connected })
	_, err := CarryOut(t.Context(), client, testNamespace, order(1, published.ControlBlock, time.Hour))
	must(t, err)
	within(t, "in force", patience, func() bool { return len(target.all()) == 1 })
	replica, former := set.Replica(), set.Primary()
	replica.AwaitReplica()

	replica.Pause() // so that it does not connect again
	must(t, client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
	_, err = CarryOut(t.Context(), client, testNamespace, order(2, published.ControlBlock, time.Hour))
	must(t, err)
	within(t, "the second in force", patience, func() bool { return len(target.all()) == 2 })
	set.KillPrimary()
	replica.Resume()
	set.AwaitFailover(former)
	within(t, "the first alone", patience, func() bool { return target.words() == "block "+text(1) })
	_, err = CarryOut(t.Context(), client, testNamespace, order(3, published.ControlPin, time.Hour))
	must(t, err)
	within(t, "a new one in force", patience, func() bool { return len(target.all()) == 2 })
}

// A control is read as it was written, and no input causes a panic.
func FuzzControl(f *testing.F) {
	c := published.Control{Key: rules.Key{Rule: "r", Text: "GET /s?q=1"}, Action: published.ControlPin, Since: time.UnixMilli(1), Until: time.UnixMilli(2), Why: "a \"b\"\n", By: "ops", Claimed: "ann"}
	f.Add(c.Key.String(), published.EncodeControl(&c))
	f.Add("x", []byte(`{"action":"pin","since":1,"until":2}`))
	if got, err := published.ParseControl(c.Key.String(), published.EncodeControl(&c)); err != nil || got != c {
		f.Errorf("%+v, %v", got, err)
	}
	f.Fuzz(func(t *testing.T, member string, value []byte) {
		c, err := published.ParseControl(member, value)
		if err != nil {
			return
		}
		again, err := published.ParseControl(member, published.EncodeControl(&c))
		if err != nil || again.Key != c.Key || again.Action != c.Action || !again.Until.Equal(c.Until) {
			t.Errorf("%+v, %v, was %+v", again, err, c)
		}
		change := published.ControlChange{Control: c}
		if got, err := published.ParseControlChange(published.EncodeControlChange(&change)); err != nil || got.Key != c.Key {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
