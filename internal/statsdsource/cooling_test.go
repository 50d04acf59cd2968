package statsdsource

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// Keys that end around a restart cool within a second of their cooling without it, although
// packets are lost, and other rules and keys send many more counts in between. Packets that would
// heal a loss may arrive while no aggregator runs. That sender's keys then cool later, so a tenth of
// all keys may.
func TestRatesCoolAsWithoutARestart(t *testing.T) {
	total, late, worst := 0, 0, time.Duration(0)
	seeds := testenv.Cases(12, 3)
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			th := rules.NewThreshold(rules.Rate{N: 100, Per: 10 * time.Second})
			th.Hold, th.CoolDown = time.Second, 500*time.Millisecond
			m := newResumeModel(rand.New(rand.NewPCG(seed, 9)), th)
			defer m.end()
			m.mu.Lock()
			m.loss = 0.02
			m.mu.Unlock()
			m.others = 30
			for i := range m.rates {
				m.rates[i] = 0.03 // cold
				if i < 20 {
					m.rates[i] = 0.3 + 0.02*float64(i)
				}
			}
			m.run(t, 12*time.Second)
			for i := range 20 { // they end one after the other
				m.rates[i] = 0
				if i == 12 {
					m.kill(t, false)
				}
				if i == 16 {
					m.revive(200 * time.Millisecond)
				}
				m.run(t, time.Duration(100+m.IntN(200))*time.Millisecond)
			}
			m.run(t, 25*time.Second)
			for _, p := range m.problems {
				t.Error(p)
			}
			for text, without := range m.twin.cooled {
				if without.Before(m.resumed.Add(time.Second)) {
					continue
				}
				total++
				with, ok := m.live.cooled[text]
				if d := with.Sub(without); !ok || d > time.Second {
					late++
					worst = max(worst, d)
				}
			}
		})
	}
	t.Logf("%d of %d keys cool more than a second later than without the restart, by up to %v", late, total, worst)
	if total < 16*seeds || late > total/10 {
		t.Errorf("%d of %d keys cool more than a second later than without the restart, by up to %v", late, total, worst)
	}
}
