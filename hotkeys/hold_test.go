package hotkeys

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// heldFleet is a publisher of keys 1 and 2 and an instance that holds them.
type heldFleet struct {
	*testing.T
	m       *miniredis.Miniredis
	client  *redis.Client
	r       *recorder
	w       *Watcher
	log     *testenv.LogBuffer
	stop    func() // stops the publisher
	stopped time.Time
}

// held runs a test of a fleet in a bubble.
func held(t *testing.T, span time.Duration, test func(f *heldFleet)) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		f := &heldFleet{T: t, m: m, client: client, r: newRecorder(), log: new(testenv.LogBuffer)}
		f.w = testWatcher(t, client, f.r)
		f.w.cfg.Logger = loggerTo(f.log)
		f.w.SetHold(span)
		heartbeat, err := NewHeartbeat(client, HeartbeatConfig{Namespace: testNamespace, Member: func() published.Member {
			s := f.w.Stats()
			return published.Member{Name: "a", Role: published.RoleInstance, Held: int64(s.Held), HeldSince: s.HeldSince}
		}})
		must(t, err)
		stopWatcher, stopHeartbeat := testenv.Running(t, f.w.Run), testenv.Running(t, heartbeat.Run)
		f.publish(1, 2)
		f.wantAfter(20*time.Second, 1, 2)
		test(f)
		f.stop()
		stopHeartbeat()
		stopWatcher()
	})
}

// publish starts a new publisher, which publishes keys.
func (f *heldFleet) publish(keys ...int) {
	p := testPublisher(f.T, f.client, nil)
	f.stop = testenv.Running(f.T, p.Run)
	for _, i := range keys {
		p.Publish(hots(hot(text(i), 100, 50)))
	}
}

// lose ends the publisher, and waits until the instance has noticed.
func (f *heldFleet) lose() {
	f.stop()
	time.Sleep(6 * time.Second)
	synctest.Wait()
}

func (f *heldFleet) wantAfter(d time.Duration, keys ...int) {
	f.Helper()
	time.Sleep(d)
	synctest.Wait()
	want := make(map[string]int64)
	for _, i := range keys {
		want[text(i)] = 50
	}
	wantHot(f.T, f.r, want)
}

// wantHeld checks what the instance reports about itself, here and in Redis.
func (f *heldFleet) wantHeld(n int) {
	f.Helper()
	time.Sleep(1500 * time.Millisecond)
	s := f.w.Stats()
	if s.Held != n || s.HeldSince.IsZero() != (n == 0) {
		f.Errorf("%d held since %v, want %d", s.Held, s.HeldSince, n)
	}
	members, err := ListMembers(f.Context(), f.client, testNamespace)
	if err != nil || len(members) != 1 || members[0].Held != int64(n) || n > 0 && members[0].HeldSince.UnixMilli() != s.HeldSince.UnixMilli() {
		f.Errorf("members: %+v, %v", members, err)
	}
}

// Without a hold, as by default, keys end with the heartbeat.
func TestNoHold(t *testing.T) {
	held(t, 0, func(f *heldFleet) {
		f.lose()
		f.wantAfter(0)
		f.wantHeld(0)
		if strings.Contains(f.log.String(), "held") {
			f.Error(f.log)
		}
	})
}

// With a hold, keys outlive the heartbeat by the hold's duration and then end, whether the
// aggregator or Redis failed. The log reports the start and the end once each.
func TestHold(t *testing.T) {
	for name, gone := range map[string]func(f *heldFleet){
		"aggregator":          func(*heldFleet) {},
		"Redis":               func(f *heldFleet) { f.m.SetError("LOADING gone") },
		"aggregator, flushed": func(f *heldFleet) { f.m.FlushAll() },
	} {
		t.Run(name, func(t *testing.T) {
			held(t, time.Minute, func(f *heldFleet) {
				gone(f)
				f.lose()
				f.wantAfter(0, 1, 2)
				if name == "aggregator" {
					f.wantHeld(2)
				}
				f.wantAfter(50*time.Second, 1, 2)
				if f.w.Stats().HeldSince.IsZero() {
					f.Error("held since never")
				}
				f.wantAfter(12 * time.Second)
				for _, line := range []string{"hot keys are held and stay limited", "no longer held"} {
					if n := strings.Count(f.log.String(), line); n != 1 {
						f.Errorf("%q is logged %d times:\n%s", line, n, f.log)
					}
				}
				if s := f.w.Stats(); s.Held != 0 || !s.HeldSince.IsZero() || s.Keys != 0 {
					f.Errorf("%+v", s)
				}
			})
		})
	}
}

// An operator ends the hold of one key. Without a hold there is nothing to release.
func TestHoldIsReleased(t *testing.T) {
	held(t, time.Hour, func(f *heldFleet) {
		key := func(i int) rules.Key { return hot(text(i), 1, 50).Key }
		if _, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key(1), Claimed: "ann"}); !errors.Is(err, ErrNoControl) {
			f.Errorf("released of an aggregator: %v", err)
		}
		if _, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key(2), Action: published.ControlPin, For: time.Hour}); err != nil {
			f.Error(err)
		}
		f.lose()
		f.wantHeld(2)
		c, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key(1), Why: "enough", Claimed: "ann"})
		if err != nil || c.Action != published.ControlHold || c.Why != "enough" {
			f.Errorf("%+v, %v", c, err)
		}
		f.wantAfter(1100*time.Millisecond, 2)
		f.wantHeld(1)
		events, err := readControlEvents(f.Context(), f.client, testLayout, "", 10)
		if err != nil || len(events) != 2 || !events[1].Release || events[1].Key != key(1) {
			f.Errorf("%+v, %v", events, err)
		}
		// A release of a control ends the hold as well.
		if c, err = CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key(2), Claimed: "ann"}); err != nil || c.Action != published.ControlPin {
			f.Errorf("%+v, %v", c, err)
		}
		f.wantAfter(1100 * time.Millisecond)
		f.wantHeld(0)
		if _, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key(1), Claimed: "ann"}); !errors.Is(err, ErrNoControl) {
			f.Errorf("released twice: %v", err)
		}
		f.wantAfter(15 * time.Second) // until Redis's own entries have expired
		f.publish(1)
		f.wantAfter(time.Second, 1) // the publisher's data counts again
	})
}

// A release from before the outage ends no hold.
func TestOldReleaseEndsNoHold(t *testing.T) {
	held(t, time.Hour, func(f *heldFleet) {
		key := hot(text(1), 1, 50).Key
		if _, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key, Action: published.ControlPin, For: time.Hour}); err != nil {
			f.Error(err)
		}
		if _, err := CarryOut(f.Context(), f.client, testNamespace, ControlOrder{Key: key, Claimed: "ann"}); err != nil {
			f.Error(err)
		}
		f.lose()
		f.wantAfter(10*time.Second, 1, 2)
	})
}

// A publisher that returns decides: at once on the keys that it publishes, and within the grace
// period on all others.
func TestReturnEndsHold(t *testing.T) {
	t.Parallel()
	for name, flushed := range map[string]bool{"as it was": false, "flushed": true} {
		t.Run(name, func(t *testing.T) {
			held(t, time.Hour, func(f *heldFleet) {
				f.lose()
				f.wantAfter(time.Minute, 1, 2)
				if flushed {
					f.m.FlushAll()
				}
				f.publish(2, 3)
				if flushed { // its whole part is written again, without the first key
					f.wantAfter(time.Second, 2, 3)
				} else {
					f.wantAfter(time.Second, 1, 2, 3)
				}
				f.wantAfter(holdGrace+2*time.Second, 2, 3)
				if f.r.cooled[text(2)] {
					f.Error("a key that is published again was free meanwhile")
				}
				f.wantAfter(time.Minute, 2, 3)
				f.wantHeld(0)
			})
		})
	}
}

// Keys whose publisher survives an outage of Redis never cool in between.
func TestRedisReturnsToHeldKeys(t *testing.T) {
	held(t, 10*time.Minute, func(f *heldFleet) {
		f.m.SetError("LOADING gone")
		f.wantAfter(time.Minute, 1, 2)
		if s := f.w.Stats(); s.Held != 2 {
			f.Errorf("%+v", s)
		}
		f.m.SetError("")
		f.wantAfter(time.Minute, 1, 2)
		f.wantHeld(0)
		if len(f.r.cooled) > 0 {
			f.Errorf("were free: %v", f.r.cooled)
		}
	})
}

// The hold's span is changed while keys are held, by an edited file while nothing else is
// reachable.
func TestHoldIsChanged(t *testing.T) {
	held(t, time.Minute, func(f *heldFleet) {
		f.m.SetError("LOADING gone")
		f.lose()
		f.w.SetHold(2 * time.Minute)
		f.wantAfter(80*time.Second, 1, 2)
		f.w.SetHold(30 * time.Second)
		f.wantAfter(0)
		f.w.SetHold(time.Hour)
		f.wantAfter(time.Second)
	})
	held(t, time.Hour, func(f *heldFleet) {
		f.lose()
		f.w.SetHold(0)
		f.wantAfter(0)
		f.wantHeld(0)
	})
}

// The state agrees with a simple model that counts each second, for any order of events.
func TestHoldAgainstAccount(t *testing.T) {
	type account struct {
		until, since int // seconds; since is 0 if the key is not held
		inForce      bool
	}
	rapid.Check(t, func(t *rapid.T) {
		s := state{entries: make(map[string]*heldEntry)}
		start := time.Now()
		at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
		keys := make([]account, 4)
		told := make(map[string]bool)
		member := func(i int) string { return hot(text(i), 1, 50).Key.String() }
		beat, span, grace, alive := 0, 0, 0, false
		for second := 1; second < 80; second++ {
			now, i := at(second), rapid.IntRange(0, len(keys)-1).Draw(t, "key")
			k := &keys[i]
			switch rapid.SampledFrom([]string{"", "", "", "", "beat", "beat", "hot", "hot", "cool", "release", "span", "stale"}).Draw(t, "move") {
			case "beat":
				beat = second + rapid.IntRange(1, 5).Draw(t, "life")
				s.beat = at(beat)
			case "hot":
				k.until, k.since = second+rapid.IntRange(1, 15).Draw(t, "life"), 0
				s.grant(hot(text(i), 1, 50), time.Duration(k.until-second)*time.Second, now)
			case "stale": // an end in the past has no effect on a held key
				if k.since == 0 {
					k.until = second - 1
				}
				s.grant(hot(text(i), 1, 50), -time.Second, now)
			case "cool":
				*k = account{}
				s.applyChange(&published.Push{Cool: []rules.Key{hot(text(i), 1, 50).Key}}, now.Add(-time.Hour))
			case "release":
				k.since = 0
				if e := s.entries[member(i)]; e != nil {
					s.letGo(e)
					s.end = time.Time{}
				}
			case "span":
				span = rapid.SampledFrom([]int{0, 10, 30}).Draw(t, "span")
				s.setSpan(time.Duration(span) * time.Second)
			}
			was := alive
			alive = second < beat
			if alive && !was {
				grace = second + int(holdGrace/time.Second)
			}
			n := 0
			for i := range keys {
				k := &keys[i]
				if was && !alive && span > 0 && k.inForce && k.since == 0 && k.until >= beat {
					k.since = beat
				}
				if k.since > 0 && (second >= k.since+span || alive && second >= grace) {
					k.since = 0
				}
				k.inForce = k.since > 0 || alive && second < k.until
				if k.since > 0 {
					n++
				}
			}
			change, _ := s.nextChange(now)
			for _, h := range change.Hot {
				told[h.Key.String()] = true
			}
			for _, h := range change.Cool {
				delete(told, h.Key.String())
			}
			for i := range keys {
				if told[member(i)] != keys[i].inForce {
					t.Fatalf("second %d: key %d in force: %v, want %+v", second, i, told[member(i)], keys[i])
				}
			}
			if s.held != n || s.since.IsZero() != (n == 0) {
				t.Fatalf("second %d: %d held since %v, want %d", second, s.held, s.since, n)
			}
		}
	})
}
