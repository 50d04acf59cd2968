package graphitesource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Aggregators end, restart after a while and inherit the published set, and Graphite is
// unavailable at times. Graphite still has the counts of these times. So whenever the points are
// known, each key that has reached its threshold is hot. No key has cooled that is not below the
// exit of each of its windows, and one that is below them cools at once. No published bound is
// wrong.
func TestInheritsAcrossRestarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) { newInheritModel(t, seed).run() })
	})
}

type inheritModel struct {
	*world
	rand      *rand.Rand
	rule      rules.Rule
	texts     []string
	truth     map[string]map[int64]int64 // by point
	names     map[string]string          // of series, by text
	heartbeat string
	end       func()          // ends the source that runs, or nil
	inherits  time.Time       // time at which it inherits the published set
	before    map[string]bool // hot when last looked
}

func newInheritModel(t *testing.T, seed uint64) *inheritModel {
	m := &inheritModel{rand: rand.New(rand.NewPCG(seed, 7)), truth: make(map[string]map[int64]int64), before: make(map[string]bool)}
	m.rule = hotRule("r", 0, time.Second)
	m.rule.Hot = nil
	coolDown := []time.Duration{0, 4 * time.Second, 100 * time.Second}[m.rand.IntN(3)]
	for i, per := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		if m.rand.IntN(2) == 0 && (i < 2 || len(m.rule.Hot) > 0) {
			continue
		}
		h := hotRule("r", int64(40+m.rand.IntN(20))*int64(1+per/(2*time.Second)), per).Hot[0]
		h.CoolDown = coolDown
		m.rule.Hot = append(m.rule.Hot, h)
	}
	for i := range 4 {
		text := fmt.Sprint("q=", i)
		m.texts, m.truth[text] = append(m.texts, text), make(map[int64]int64)
	}
	m.world = newWorld(t, nil, m.rule)
	m.heartbeat, m.names = m.source.cfg.Heartbeat, make(map[string]string)
	for _, text := range m.texts {
		m.names[text] = m.series(text)
	}
	m.source = nil
	return m
}

func (m *inheritModel) run() {
	rate := make(map[string]int)
	for range 120 {
		for _, text := range m.texts {
			if m.rand.IntN(25) == 0 {
				rate[text] = []int{0, 1, 2, 30, 45, 80}[m.rand.IntN(6)]
			}
		}
		switch {
		case m.end == nil:
			if m.rand.IntN(4) == 0 {
				m.begin()
			}
		case m.rand.IntN(20) == 0:
			m.end()
		case m.rand.IntN(20) == 0:
			m.graphite.breakBy(func(w http.ResponseWriter, _ *http.Request) bool {
				http.Error(w, "away", http.StatusBadGateway)
				return true
			})
		case m.rand.IntN(3) == 0:
			m.graphite.breakBy(nil)
		}
		m.second(rate)
		m.check()
	}
	if m.end != nil {
		m.end()
	}
}

// begin starts another source, which inherits the published set.
func (m *inheritModel) begin() {
	s, err := New(m.cfg)
	if err != nil {
		m.Fatal(err)
	}
	s.client.http.Transport = m.graphite
	m.source = s
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx)
	}()
	late := time.Duration(m.rand.IntN(3)) * 700 * time.Millisecond // after its first poll
	time.AfterFunc(late, func() { s.Inherit(m.hot.all()) })
	m.inherits = time.Now().Add(late)
	m.end = func() {
		cancel()
		<-ended
		m.source, m.end = nil, nil
	}
}

// second writes the counts of a second, and waits until the source has asked for them.
func (m *inheritModel) second(rate map[string]int) {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 10*time.Millisecond)))
	at := time.Now().Unix()
	for text, n := range rate {
		if n > 0 {
			m.truth[text][at] = int64(n)
			m.graphite.write(m.names[text], at, float64(n))
		}
	}
	m.graphite.write(m.heartbeat, at, 3)
	time.Sleep(500 * time.Millisecond)
	synctest.Wait()
}

func (m *inheritModel) sum(text string, newest int64, per time.Duration) (n int64) {
	for at := newest - int64(per/time.Second) + 1; at <= newest; at++ {
		n += m.truth[text][at]
	}
	return n
}

func (m *inheritModel) check() {
	newest := time.Now().Unix()
	hot := m.hot.all()
	now := make(map[string]bool)
	for _, h := range hot {
		now[h.Text] = true
	}
	known := int64(0)
	if m.source != nil {
		m.source.busy.Lock()
		known = m.source.job.known
		m.source.inheriting.Lock()
		if len(m.source.job.adopted)+len(m.source.inherited) > 0 || time.Now().Before(m.inherits) {
			known = 0 // the next poll decides
		}
		m.source.inheriting.Unlock()
		m.source.busy.Unlock()
	}
	for _, text := range m.texts {
		reaches, below := false, true
		for i := range m.rule.Hot {
			h := &m.rule.Hot[i]
			reaches = reaches || m.sum(text, newest, h.Rate.Per) >= h.Rate.N
			for at := newest - 2 - int64(h.CoolDown/time.Second); at <= newest; at++ { // of the newest more may come
				below = below && m.sum(text, at, h.Rate.Per) < h.ExitCount(h.Rate.N)
			}
		}
		switch {
		case known != newest:
			if m.before[text] && !now[text] {
				m.Errorf("%s cooled while nothing was known", text)
			}
		case reaches && !now[text]:
			m.Errorf("%v: %s is not hot, and reaches its threshold", m.rule.Hot, text)
		case below && now[text] && m.rule.Hot[0].CoolDown < time.Minute: // else it began before the points that are read
			m.Errorf("%s is hot, and below its exit", text)
		}
	}
	for i := range hot {
		h := &hot[i]
		last, before := m.sum(h.Text, newest, h.Cause.Rate.Per), m.sum(h.Text, newest-1, h.Cause.Rate.Per)
		if n := max(last, before); known == newest && (h.Low > n || n > h.High && h.High != published.Unknown) {
			m.Errorf("%s is published with %d to %d in %v, and counted %d", h.Text, h.Low, h.High, h.Cause.Rate.Per, n)
		}
	}
	m.before = now
}
