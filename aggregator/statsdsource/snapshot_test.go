package statsdsource

import (
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/aggregator/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// A key that stopped 40 s before a restart cools when it would have cooled without, not when a
// window was heard whole.
func TestARestartDelaysNoCooling(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			th := rules.NewThreshold(rules.Rate{N: 3000, Per: time.Minute})
			m := newResumeModel(rand.New(rand.NewPCG(1, 2)), th)
			defer m.end()
			for i := range m.rates {
				m.rates[i] = 0.3
			}
			m.rates[0] = 4
			m.run(t, 20*time.Second)
			m.rates[0] = 0
			m.run(t, 38*time.Second+700*time.Millisecond)
			if len(m.twin.hot) != 1 || len(m.live.hot) != 1 {
				t.Fatalf("hot are %v and %v, want the one key", m.twin.hot, m.live.hot)
			}
			m.kill(t, orderly)
			m.run(t, 900*time.Millisecond)
			m.revive(500 * time.Millisecond)
			m.run(t, 30*time.Second)
			for _, p := range m.problems {
				t.Error(p)
			}
			text := m.texts[0]
			if without, with := m.twin.cooled[text], m.live.cooled[text]; without.IsZero() || with.Sub(without).Abs() > time.Second || with.IsZero() {
				t.Errorf("the key cooled at %v without the restart and at %v with it", without.Sub(m.begins), with.Sub(m.begins))
			} else {
				t.Logf("the key cooled at %v without the restart and at %v with it", without.Sub(m.begins), with.Sub(m.begins))
			}
		})
	}
}

// Aggregators are killed at any moment and continue from snapshots of any age, packets are lost,
// late and overtaken, and senders come and go: no bound is wrong, no key leaves whose count has
// reached its exit, and none enters that has not reached its threshold.
func TestSnapshotsBoundTheTruth(t *testing.T) {
	judged, unknown := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		var problems []string
		synctest.Test(t, func(t *testing.T) {
			m := randomResumeModel(rand.New(rand.NewPCG(seed, 1)))
			defer m.end()
			m.runRandom(t)
			if !m.mistaken {
				problems = m.problems
			}
			judged, unknown = judged+m.judged, unknown+m.unknown
		})
		if len(problems) > 0 {
			rt.Fatal(strings.Join(problems, "\n"))
		}
	})
	t.Logf("%d bounds were known, %d were not", judged, unknown)
}

// A snapshot that does not fit is refused, and then nothing is known of before.
func TestSnapshotsThatDoNotFitAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(m *resumeModel, s *snapshot.Snapshot){
		"too old":     func(m *resumeModel, _ *snapshot.Snapshot) { m.run(t, 10*time.Second) },
		"future":      func(_ *resumeModel, s *snapshot.Snapshot) { s.Cut = s.Cut.Add(time.Minute) },
		"other rules": func(_ *resumeModel, s *snapshot.Snapshot) { s.Rules[0] += "x" },
		"version":     func(m *resumeModel, _ *snapshot.Snapshot) { m.store.data[7]++ },
		"malformed":   func(m *resumeModel, _ *snapshot.Snapshot) { m.store.data = m.store.data[:len(m.store.data)-1] },
		"":            func(*resumeModel, *snapshot.Snapshot) {},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newResumeModel(rand.New(rand.NewPCG(1, 2)), rules.NewThreshold(rules.Rate{N: 300, Per: 10 * time.Second}))
			defer m.end()
			m.rates[0] = 4
			m.run(t, 5*time.Second)
			m.kill(t, true)
			s, err := snapshot.Parse(m.store.data)
			if err != nil {
				t.Fatal(err)
			}
			spoil(m, s)
			if name != "version" && name != "malformed" {
				m.store.data, _ = s.Append(nil)
			}
			m.revive(0)
			m.run(t, 40*time.Millisecond)
			got, want := m.live.source.Stats().Snapshot, SnapshotStats{Refused: 1}
			if name == "" {
				want = SnapshotStats{Resumed: 1}
			}
			if got.Refused != want.Refused || got.Resumed != want.Resumed {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		})
	}
}

// A standby that has heard the packets that the snapshot counts does not count them twice.
func TestAStandbyThatCountedUsesNoSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newResumeModel(rand.New(rand.NewPCG(1, 2)), rules.NewThreshold(rules.Rate{N: 300, Per: 10 * time.Second}))
		defer m.end()
		m.rates[0] = 4
		m.run(t, 4*time.Second)
		m.standby = m.start(&m.store, time.Now())
		m.run(t, time.Second)
		standby := m.standby
		m.kill(t, true)
		m.live, m.standby, m.claims = standby, nil, time.Now()
		m.run(t, 12*time.Second)
		if got := m.live.source.Stats().Snapshot; got.Resumed+got.Refused != 0 {
			t.Errorf("%+v, want no snapshot used", got)
		}
		for _, p := range m.problems {
			t.Error(p)
		}
	})
}

// While a sender of the snapshot was not heard again, nothing is known of what it sent after.
func TestNothingIsKnownWhileASenderIsUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newResumeModel(rand.New(rand.NewPCG(3, 2)), rules.NewThreshold(rules.Rate{N: 3000, Per: time.Minute}))
		defer m.end()
		m.rates[0] = 4
		m.run(t, 20*time.Second)
		m.kill(t, false)
		m.rates[0] = 0
		m.run(t, 500*time.Millisecond)
		gone := m.senders[0]
		gone.stop()
		m.senders = m.senders[1:]
		if len(m.senders) == 0 {
			m.senders = append(m.senders, m.newSender("api-9"))
		}
		m.run(t, 500*time.Millisecond)
		m.revive(0)
		m.run(t, 30*time.Second)
		if m.live.known > 0 {
			t.Errorf("%d high counts were known", m.live.known)
		}
		m.run(t, 40*time.Second)
		if m.live.known == 0 || len(m.live.hot) > 0 {
			t.Errorf("%d high counts are known, %d keys hot, when all is out of the window", m.live.known, len(m.live.hot))
		}
		for _, p := range m.problems {
			t.Error(p)
		}
	})
}

// Keys that are not in a snapshot may have counted as many as those that are in it.
func TestNoRankIsKnownByTheKeysOfASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := rules.NewThreshold(rules.Rate{N: 100, Per: time.Minute})
		th.Kind, th.Top = rules.Top, 1
		m := newResumeModel(rand.New(rand.NewPCG(1, 2)), th)
		defer m.end()
		m.rates[0], m.rates[1] = 1, 3
		m.run(t, 10*time.Second)
		m.rates[0], m.rates[1] = 0, 0
		m.run(t, time.Second)
		m.kill(t, true)
		s, err := snapshot.Parse(m.store.data)
		if err != nil || len(s.Keys) != 2 {
			t.Fatalf("%v, %d keys", err, len(s.Keys))
		}
		for i := range s.Keys { // the one that is hot is left out, as for want of room
			if string(s.Keys[i].Text) == m.texts[1] {
				s.Keys = append(s.Keys[:i], s.Keys[i+1:]...)
				break
			}
		}
		m.store.data, _ = s.Append(nil)
		clear(m.redis)
		m.revive(0)
		m.rates[0] = 0.1
		m.run(t, 20*time.Second)
		if _, hot := m.live.hot[m.texts[0]]; hot {
			t.Error("the second is hot as the first of all keys")
		}
	})
}
