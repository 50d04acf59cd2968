package hotkeys

import (
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
)

// twoOwners returns a watcher with its publisher of key 1, and a second publisher of key 2. All of
// them run step by step.
func twoOwners(t *testing.T, client redis.UniversalClient) (f *follower, other *Publisher) {
	f = newFollower(t, client)
	other = testPublisher(t, client, func(c *PublisherConfig) { c.Owner = "other" })
	other.Publish(hots(hot(text(2), 100, 50)))
	must(t, other.settle(t.Context()))
	f.poll()
	f.want(1, 2)
	return f, other
}

// Redis loses everything, and the owners write their parts again one after the other. Hot keys stay
// hot until both have written, and no longer.
func TestOwnersRewriteOneAfterTheOther(t *testing.T) {
	pushed := func(f *follower) { f.push(lastPush(f.t, f.client)) }
	for how, first := range map[string]func(*follower){"pushed": pushed, "polled": (*follower).poll} {
		for what, tt := range map[string]struct {
			meanwhile published.Change
			then      func(*follower)
			want      []int
		}{
			"all of it":           {published.Change{}, pushed, []int{1, 2}},
			"something else":      {published.Change{Hot: []published.Hot{hot(text(3), 100, 50)}, Cool: []published.Hot{hot(text(1), 1, 50)}}, pushed, []int{2, 3}},
			"something else, too": {hots(hot(text(3), 100, 50)), (*follower).poll, []int{1, 2, 3}},
			"nothing":             {cools(hot(text(1), 1, 50)), func(f *follower) { pushed(f); f.poll() }, []int{2}},
		} {
			t.Run(how+"/"+what, func(t *testing.T) {
				bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
					f, other := twoOwners(t, client)
					m.FlushAll()
					must(t, other.renew(t.Context()))
					first(f)
					f.want(1, 2)
					f.poll()
					f.want(1, 2)
					f.p.Publish(tt.meanwhile)
					must(t, f.p.renew(t.Context()))
					tt.then(f)
					f.want(tt.want...)
					if stays := slices.Contains(tt.want, 1); f.r.cooled[text(1)] == stays || f.r.cooled[text(2)] {
						t.Errorf("cooled: %v", f.r.cooled)
					}
					resyncs := f.w.Stats().Resyncs
					f.poll()
					if s := f.w.Stats(); s.Resyncs != resyncs || s.Keys != len(tt.want) || f.w.state.missed != 0 || !f.w.lostSince.IsZero() {
						t.Errorf("still looks for what is not there: %+v, %d missed", s, f.w.state.missed)
					}
				})
			})
		}
	}
}

// An owner that is gone does not write its part again, so the part ends soon.
func TestOwnerNeverRewrites(t *testing.T) {
	bubble(t, func(t *testing.T, m *miniredis.Miniredis, client *redis.Client) {
		r := newRecorder()
		w, _, kill, stop := twoLive(t, client, r)
		defer stop()
		kill()
		m.FlushAll()
		for first := w.Stats().Version; w.Stats().Version == first; { // until the other one has noticed
			time.Sleep(time.Millisecond)
		}
		began := time.Now()
		synctest.Wait()
		wantHot(t, r, map[string]int64{text(1): 50, text(2): 50})
		r.await(t, "the end of the dead one's", has(text(1)))
		if took := time.Since(began); took > rewriteTime || took < rewriteTime-10*time.Millisecond {
			t.Errorf("faded after %v, want %v", took, rewriteTime)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		resyncs := w.Stats().Resyncs
		time.Sleep(3 * time.Second)
		synctest.Wait()
		wantHot(t, r, map[string]int64{text(1): 50})
		if s := w.Stats(); s.Resyncs != resyncs || s.Keys != 1 || r.cooled[text(1)] {
			t.Errorf("%+v, cooled %v", s, r.cooled)
		}
	})
}

// Entries are set, granted, missed and removed in any order. The state's counters always match its
// entries, and the target has the entries in force.
func TestStateCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := state{entries: make(map[string]*heldEntry)}
		now := time.Now()
		s.beat = now.Add(time.Hour)
		told := make(map[string]bool)
		owners := rapid.SampledFrom([]string{"a", "b"})
		runs := rapid.SampledFrom([]string{"r", "s"})
		keys := rapid.IntRange(0, 5)
		key := func(i int, owner string) published.PushEntry {
			h := hot(text(i), 100, 50)
			h.Owner = owner
			return published.PushEntry{Hot: h, TTL: 15 * time.Second}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(t, "ms")) * time.Millisecond)
			if rapid.Bool().Draw(t, "whole") {
				version := published.Version{Run: runs.Draw(t, "run"), N: 1}
				set := wholeSet{readAt: now, owners: map[string]string{}}
				for _, owner := range []string{"a", "b"} {
					set.owners[owner+":version"] = runs.Draw(t, "wrote") + ":1"
				}
				for _, i := range rapid.SliceOfNDistinct(keys, 0, 4, rapid.ID).Draw(t, "set") {
					if h := key(i, owners.Draw(t, "owner")).Hot; rapid.IntRange(0, 5).Draw(t, "readable") > 0 {
						h.Until = now.Add(15 * time.Second)
						set.hot = append(set.hot, h)
					} else {
						set.unreadable = append(set.unreadable, h.Key.String())
					}
				}
				began, before := version.Run != s.version.Run, maps.Clone(s.entries)
				s.replace(version, set, now)
				for member, e := range before {
					lost := s.entries[member] == nil
					if stays := began && !set.wrote(e.hot.Owner, version.Run) && now.Before(e.hot.Until); lost && stays {
						t.Fatalf("%s is lost though %s has not written again", member, e.hot.Owner)
					}
				}
			} else {
				c := published.Push{Version: s.version, At: now, Beat: time.Hour}
				owner := owners.Draw(t, "owner")
				for _, i := range rapid.SliceOfNDistinct(keys, 0, 3, rapid.ID).Draw(t, "hot") {
					c.Hot = append(c.Hot, key(i, owner))
				}
				for _, i := range rapid.SliceOfNDistinct(keys, 0, 2, rapid.ID).Draw(t, "cool") {
					c.Cool = append(c.Cool, key(i, owner).Key)
				}
				s.clock = redisClock{local: now, redis: now}
				s.applyChange(&c, now)
			}
			change, next := s.nextChange(now)
			for _, h := range change.Hot {
				told[h.Key.String()] = true
			}
			for _, h := range change.Cool {
				delete(told, h.Key.String())
			}
			missed, inForce := 0, 0
			for member, e := range s.entries {
				if e.missed {
					missed++
					if e.hot.Until.After(now.Add(rewriteTime)) {
						t.Fatalf("%s is missed for longer than %v", member, rewriteTime)
					}
				}
				if now.Before(e.hot.Until) {
					inForce++
					if next.After(e.hot.Until) {
						t.Fatalf("%s ends before the next step", member)
					}
				}
				if told[member] != now.Before(e.hot.Until) {
					t.Fatalf("%s: the target has it: %v; its end %v", member, told[member], e.hot.Until.Sub(now))
				}
			}
			for _, member := range s.dueForRenewal(now) {
				if s.entries[member].missed {
					t.Fatalf("%s is missed, and its renewal would be read", member)
				}
			}
			if s.missed != missed || s.inForce != inForce || len(told) != inForce {
				t.Fatalf("%d missed, %d in force, %d told; counted: %d, %d", missed, inForce, len(told), s.missed, s.inForce)
			}
		}
	})
}
