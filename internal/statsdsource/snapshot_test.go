package statsdsource

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/snapshot"
	"github.com/hotparam/hotparam/rules"
)

// A key cools when it would have cooled without the restart, not only after a complete window.
func TestARestartDelaysNoCooling(t *testing.T) {
	const n = 40 // keys that no threshold holds
	for i, c := range []struct {
		name      string
		threshold rules.Threshold
		// The rates of the key, its rival and each of the others, by step, before from and after
		// it.
		rates  [2][3]float64
		from   time.Duration
		stops  time.Duration // time at which the key stops, or zero if it does not
		killed time.Duration
	}{
		{"rate", rules.NewThreshold(rules.Rate{N: 3000, Per: time.Minute}), [2][3]float64{{4, 0.3, 0.3}, {0, 0.3, 0.3}}, 20 * time.Second, 0, 58700 * time.Millisecond},
		{"share", thresholdOf(rules.Share, 300, time.Minute), [2][3]float64{{4, 0.3, 0.3}, {0.1, 0.3, 0.3}}, 20 * time.Second, 0, 62700 * time.Millisecond},
		{"share while it is below", thresholdOf(rules.Share, 300, time.Minute), [2][3]float64{{4, 0.3, 0.3}, {0.1, 0.3, 0.3}}, 20 * time.Second, 0, 72700 * time.Millisecond},
		{"jump", thresholdOf(rules.Jump, 300, 10*time.Second), [2][3]float64{{1, 0, 0}, {4, 0, 0}}, 40 * time.Second, 0, 60700 * time.Millisecond},
		{"jump while it is below", thresholdOf(rules.Jump, 300, 10*time.Second), [2][3]float64{{1, 0, 0}, {4, 0, 0}}, 40 * time.Second, 60 * time.Second, 65700 * time.Millisecond},
		{"top", thresholdOf(rules.Top, 100, time.Minute), [2][3]float64{{2, 0.3, 0.1}, {1, 3, 0.1}}, 40 * time.Second, 0, 60700 * time.Millisecond},
		{"top while it is below", thresholdOf(rules.Top, 100, time.Minute), [2][3]float64{{2, 0.3, 0.1}, {1, 3, 0.1}}, 40 * time.Second, 0, 76700 * time.Millisecond},
	} {
		for _, orderly := range []bool{false, true} {
			if testing.Short() && orderly != (i%2 == 0) {
				continue
			}
			synctest.Test(t, func(t *testing.T) {
				longer := rules.NewThreshold(rules.Rate{N: 1e6, Per: time.Minute}) // for that long a snapshot is used
				m := newResumeModel(rand.New(rand.NewPCG(1, 2)), c.threshold, longer)
				defer m.end()
				set := func(rates [3]float64) {
					m.rates[0], m.rates[1] = rates[0], rates[1]
					for i := range n {
						m.rates[len(m.rates)-1-i] = rates[2]
					}
				}
				set(c.rates[0])
				m.run(t, c.from)
				set(c.rates[1])
				if c.stops > 0 {
					m.run(t, c.stops-c.from)
					m.rates[0] = 0
				}
				m.run(t, c.killed-max(c.from, c.stops))
				text := m.texts[0]
				if _, hot := m.live.hot[text]; !hot {
					t.Fatalf("%s: hot are %v and %v, want the key", c.name, m.twin.hot, m.live.hot)
				}
				m.kill(t, orderly)
				m.run(t, 900*time.Millisecond)
				m.revive(500 * time.Millisecond)
				m.run(t, 40*time.Second)
				for _, p := range m.problems {
					t.Errorf("%s: %s", c.name, p)
				}
				without, with := m.twin.cooled[text], m.live.cooled[text]
				if without.IsZero() || without.Before(m.resumed) || with.Sub(without) > time.Second || without.Sub(with) > 2*time.Second || with.IsZero() {
					t.Errorf("%s: the key cooled at %v without the restart and at %v with it", c.name, without.Sub(m.begins), with.Sub(m.begins))
				} else {
					t.Logf("%s: the key cooled at %v without the restart and at %v with it", c.name, without.Sub(m.begins), with.Sub(m.begins))
				}
			})
		}
	}
}

// A hot key's hold begins when it became hot. That also holds for a process that takes it over
// after finding it hot itself, by a snapshot or by later counts.
func TestAKeyIsHeldFromWhenItBecameHot(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			m := newResumeModel(rand.New(rand.NewPCG(1, 2)), rules.NewThreshold(rules.Rate{N: 40, Per: time.Second}))
			defer m.end()
			m.rates[0] = 4
			m.run(t, 17*time.Second)
			m.kill(t, orderly)
			m.run(t, 900*time.Millisecond)
			m.revive(500 * time.Millisecond)
			m.run(t, 2*time.Second)
			m.rates[0] = 0
			m.run(t, 15*time.Second)
			without, with := m.twin.cooled[m.texts[0]], m.live.cooled[m.texts[0]]
			if without.IsZero() || with.IsZero() || with.Sub(without) > time.Second {
				t.Errorf("orderly %v: the key cooled at %v without the restart and at %v with it", orderly, without.Sub(m.begins), with.Sub(m.begins))
			}
		})
	}
}

// thresholdOf returns a threshold that compares keys.
func thresholdOf(kind rules.ThresholdKind, n int64, per time.Duration) rules.Threshold {
	th := rules.NewThreshold(rules.Rate{N: n, Per: per})
	th.Kind, th.Top, th.Hold, th.CoolDown = kind, 1, 0, 5*time.Second
	th.Factor = rules.Fraction{Num: 2, Den: 1}
	if kind == rules.Share {
		th.Factor = rules.Percent(8)
	}
	return th
}

// Aggregators are killed at any moment and continue from snapshots of any age. Packets are lost,
// late and overtaken, and senders come and go. No bound is wrong, no key leaves whose count has
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

// A snapshot that does not match is refused, and then earlier counts are unknown.
func TestSnapshotsThatDoNotFitAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(m *resumeModel, s *snapshot.Snapshot){
		"too old": func(m *resumeModel, _ *snapshot.Snapshot) { m.run(t, 10*time.Second) },
		"future":  func(_ *resumeModel, s *snapshot.Snapshot) { s.Cut = s.Cut.Add(time.Minute) },
		"other rules": func(_ *resumeModel, s *snapshot.Snapshot) {
			for i := range s.Rules {
				s.Rules[i] += "x"
			}
		},
		"newer":     func(m *resumeModel, _ *snapshot.Snapshot) { m.store.data[7]++ },
		"older":     func(m *resumeModel, _ *snapshot.Snapshot) { m.store.data[7]-- },
		"malformed": func(m *resumeModel, _ *snapshot.Snapshot) { m.store.data = m.store.data[:len(m.store.data)-1] },
		"":          func(*resumeModel, *snapshot.Snapshot) {},
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
			if name != "newer" && name != "older" && name != "malformed" {
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

// A standby that has received the packets in the snapshot does not count them twice.
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

// Until a sender of the snapshot is received again, its later counts are unknown.
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

// Keys for which a snapshot has no room may have counted as many as the keys in it.
func TestNoRankIsKnownByTheKeysOfASnapshot(t *testing.T) {
	for _, bounded := range []bool{false, true} { // whether the snapshot bounds the others
		synctest.Test(t, func(t *testing.T) {
			th := rules.NewThreshold(rules.Rate{N: 100, Per: time.Minute})
			th.Kind, th.Top = rules.Top, 2
			m := newResumeModel(rand.New(rand.NewPCG(1, 2)), th)
			defer m.end()
			m.rates[0], m.rates[1], m.rates[2] = 2, 3, 0.3
			m.run(t, 10*time.Second)
			clear(m.rates)
			m.run(t, time.Second)
			s := &snapshot.Snapshot{Cut: time.Now()}
			m.live.source.decoders[0].Save(s)
			if bounded {
				if dropped := m.live.source.shards.Save(2, s.Carried)(s); dropped != 2 || len(s.Keys) != 1 {
					t.Fatalf("dropped %d, saved %d keys", dropped, len(s.Keys))
				}
			} else {
				m.live.source.shards.Save(100, s.Carried)(s)
				s.References = nil
				s.Keys = slices.DeleteFunc(s.Keys, func(k snapshot.RuleKey) bool { return string(k.Text) == m.texts[1] })
			}
			m.kill(t, false)
			m.store.data, _ = s.Append(nil)
			clear(m.redis)
			m.revive(0)
			m.rates[2] = 0.3
			m.run(t, 20*time.Second)
			if _, hot := m.live.hot[m.texts[2]]; hot {
				t.Errorf("the third is hot as the second of all keys, others bounded: %v", bounded)
			}
		})
	}
}

// A rank is known as soon as the counts of the snapshot's keys are known, and the bound of the
// others.
func TestARankIsKnownSoonAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		th := thresholdOf(rules.Top, 100, time.Minute)
		m := newResumeModel(rand.New(rand.NewPCG(1, 2)), th)
		defer m.end()
		m.rates[0], m.rates[1] = 2, 3
		m.run(t, 40*time.Second)
		m.kill(t, false)
		m.rates[0] = 8
		m.run(t, 500*time.Millisecond)
		m.revive(500 * time.Millisecond)
		m.run(t, 12*time.Second)
		for _, p := range m.problems {
			t.Error(p)
		}
		if _, hot := m.live.hot[m.texts[0]]; !hot {
			t.Errorf("hot are %v, want the key that has become the first", m.live.hot)
		}
	})
}
