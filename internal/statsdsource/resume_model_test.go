package statsdsource

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// resumeModel is a fleet of real senders with two aggregators that receive the same packets. One
// is killed and restarted, the other runs all the time.
type resumeModel struct {
	*rand.Rand
	rules   *rules.Rules
	rule    *rules.Rule
	others  float64 // counts of a step of another rule
	texts   []string
	rates   []float64 // counts of a step, by text
	debts   []float64
	senders []*modelSender
	loss    float64
	twin    *modelProcess
	live    *modelProcess // nil while it is down
	standby *modelProcess // nil: none
	claims  time.Time     // time at which the live one takes over, or zero if it has
	begins  time.Time
	store   modelStore
	redis   map[string]published.Hot
	skip    float64 // probability that a second has no snapshot
	kills   int     // the live one is killed once in so many steps

	killed, resumed time.Time
	restarted       time.Time

	mu       sync.Mutex
	way      []modelPacket
	truth    map[string][]modelCount
	problems []string
	mistaken bool // the bounds would be wrong without a snapshot, too
	judged   int  // bounds that were known
	unknown  int
}

type modelCount struct {
	when time.Time
	n    int64
}

type modelPacket struct {
	due  time.Time
	data []byte
}

// modelSender is an instance of the API: a collector with its sink.
type modelSender struct {
	m         *resumeModel
	name      string
	collector *collector.Collector
	stop      func()
	lossless  time.Time
	network   *rand.Rand
}

func (m *resumeModel) newSender(name string) *modelSender {
	s := &modelSender{m: m, name: name, network: rand.New(rand.NewPCG(m.Uint64(), 0))}
	sink, err := statsdsink.New(statsdsink.Config{Rules: m.rules, Sender: s, Instance: name})
	if err != nil {
		panic(err)
	}
	s.collector, err = collector.New(collector.Config{Sink: sink, Rules: m.rules, MaxKeys: 1024})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = s.collector.Run(ctx) })
	s.stop = func() {
		cancel()
		running.Wait()
	}
	return s
}

// Send implements statsd.Sender. It records the counts before any of them is lost.
func (s *modelSender) Send(data []byte) (int, error) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	when := time.Time{}
	for line := range strings.SplitSeq(string(data), "\n") {
		if meta, ok := strings.CutPrefix(line, "hotparam.meta:1|c|#"); ok {
			for field := range strings.SplitSeq(meta, ",") {
				if t, ok := strings.CutPrefix(field, "t:"); ok {
					ns, _ := strconv.ParseInt(t, 10, 64)
					when = time.Unix(0, ns)
				}
			}
			continue
		}
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(name, "shop.r.hot_param.") {
			text, _ := url.PathUnescape(strings.TrimPrefix(name, "shop.r.hot_param."))
			value, _, _ = strings.Cut(value, "|")
			n, _ := strconv.ParseInt(value, 10, 64)
			m.truth[text] = append(m.truth[text], modelCount{when, n})
		}
	}
	now := time.Now()
	if now.After(s.lossless) && s.network.Float64() < m.loss {
		return len(data), nil
	}
	delay := time.Duration(s.network.IntN(5)) * time.Millisecond
	if s.network.IntN(20) == 0 {
		delay = time.Duration(s.network.IntN(110)) * time.Millisecond
	}
	m.way = append(m.way, modelPacket{now.Add(delay), bytes.Clone(data)})
	return len(data), nil
}

func (s *modelSender) Close() error { return nil }

// modelStore holds the latest snapshot.
type modelStore struct{ data []byte }

func (s *modelStore) Publishes() bool { return true }
func (s *modelStore) Save(_ context.Context, data []byte, _ time.Duration) error {
	s.data = data
	return nil
}
func (s *modelStore) Load(context.Context) ([]byte, error) { return s.data, nil }

// modelProcess is an aggregator without sockets.
type modelProcess struct {
	m       *resumeModel
	source  *Source
	hot     map[string]published.Hot
	cooled  map[string]time.Time
	known   int // high counts
	running sync.WaitGroup
}

func (m *resumeModel) start(store Snapshots, start time.Time) *modelProcess {
	p := &modelProcess{m: m, hot: make(map[string]published.Hot), cooled: make(map[string]time.Time)}
	s := &Source{listener: &listener{stats: new(listenerStats)}, publisher: p, snapshots: store, rules: decode.NumberRules(m.rules), started: time.Now()}
	s.decoders = []*decode.Decoder{decode.NewDecoder(m.rules, wire.Plain)}
	s.shards = aggregator.NewShards(aggregator.DetectorConfig{
		Rules: m.rules, Publisher: p, Memory: 1 << 20, Lag: modelLag, Start: start, OnVerdict: p.onVerdict,
		Explain: rules.Key{Text: m.texts[0]}, OnAccount: p.onAccount,
	}, 2, 1)
	s.feeds = []aggregator.Feed{s.shards.Feed(0)}
	p.source = s
	p.running.Go(s.shards.Run)
	return p
}

func (p *modelProcess) stop() {
	p.source.shards.Close()
	p.running.Wait()
}

// read passes packets to the decoder as a reader does.
func (p *modelProcess) read(packets []modelPacket, now time.Time) {
	out, d := p.source.feeds[0], p.source.decoders[0]
	out.Begin()
	p.source.listener.decoding.RLock()
	defer p.source.listener.decoding.RUnlock()
	for _, packet := range packets {
		d.Packet(packet.data, now, out)
	}
	d.Advance(now, out)
	out.End(now, now, p.m.IntN(3) == 0)
}

func (p *modelProcess) Publish(c published.Change) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	for _, h := range c.Hot {
		p.hot[h.Text] = h
		delete(p.cooled, h.Text)
	}
	for _, h := range c.Cool {
		delete(p.hot, h.Text)
		p.cooled[h.Text] = time.Now()
	}
}

func (*modelProcess) Refresh(int, []published.Hot)   {}
func (*modelProcess) Suspects(int, []published.Hot)  {}
func (*modelProcess) Instances([]published.Instance) {}

func (p *modelProcess) fail(format string, args ...any) {
	if p == p.m.twin {
		p.m.mistaken = true
	}
	if len(p.m.problems) < 5 {
		who := "twin"
		if p == p.m.live {
			who = "live"
		}
		p.m.problems = append(p.m.problems, fmt.Sprintf(who+" "+format, args...))
	}
}

// sum returns the count of a key that was sent in the window that ends with a pane.
func (m *resumeModel) sum(text string, w rules.Window, last int64) (n int64) {
	from, to := w.Start(last-int64(w.Panes)+1), w.Start(last+1)
	for _, c := range m.truth[text] {
		if !c.when.Before(from) && c.when.Before(to) {
			n += c.n
		}
	}
	return n
}

func (p *modelProcess) onAccount(a aggregator.Account) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	w := a.Threshold.Window()
	truth := p.m.sum(p.m.texts[0], w, w.Index(a.Start))
	if a.Low > truth || a.High != published.Unknown && a.High < truth {
		p.fail("window %v to %v: %d to %d, the truth is %d; killed %v resumed %v restarted %v", w.Pane*time.Duration(w.Panes), a.End.Sub(p.m.begins), a.Low, a.High, truth, p.m.killed.Sub(p.m.begins), p.m.resumed.Sub(p.m.begins), p.m.restarted.Sub(p.m.begins))
	}
	if p != p.m.twin {
		if a.High == published.Unknown {
			p.m.unknown++
		} else {
			p.m.judged++
			p.known++
		}
	}
}

func (p *modelProcess) onVerdict(v aggregator.Verdict) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	w := v.Threshold.Window()
	last := w.Index(v.At)
	switch v.Kind {
	case aggregator.Entered:
		why, found := "", false
		for after := int64(-1); after <= int64(w.Panes) && !found; after++ { // a healed count may come late
			truth, need := p.m.sum(v.Text, w, last+after), p.m.enters(v.Text, v.Threshold, last+after)
			found = truth >= need
			why += fmt.Sprintf(" %d of %d", truth, need)
		}
		if !found {
			p.fail("%s became hot at %v by %d in %v with %d to %d against %d, the truth is%s: %v killed %v resumed %v restarted %v", v.Text, v.At.Sub(p.m.begins), v.Threshold.Rate.N, v.Threshold.Rate.Per, v.Low, v.High, v.Against, why, v.Threshold.Kind, p.m.killed.Sub(p.m.begins), p.m.resumed.Sub(p.m.begins), p.m.restarted.Sub(p.m.begins))
		}
	case aggregator.Left:
		if truth, exit := p.m.sum(v.Text, w, last-1), p.m.leaves(v.Text, v.Threshold, last-1); truth >= exit {
			p.fail("%s left at %v with %d, the exit is %d, was taken for %d: %v in %v killed %v resumed %v", v.Text, v.At.Sub(p.m.begins), truth, exit, v.Against, v.Threshold.Kind, v.Threshold.Rate.Per, p.m.killed.Sub(p.m.begins), p.m.resumed.Sub(p.m.begins))
		}
	}
}

const (
	modelStep = 20 * time.Millisecond
	// modelLag is the time within which a loss is noticed: with the next packet, or the one
	// after.
	modelLag = time.Second
)

// step lets a step pass.
func (m *resumeModel) step(t testing.TB) {
	for i, text := range m.texts {
		m.debts[i] += m.rates[i]
		n := uint64(m.debts[i])
		m.debts[i] -= float64(n)
		if n > 0 {
			member := []byte("r " + text)
			m.senders[m.IntN(len(m.senders))].collector.Add(rules.Hash(member), member, n)
		}
	}
	for range int(m.others * (1 + m.Float64())) {
		member := fmt.Appendf(nil, "other GET /s?q=%d", m.IntN(100))
		m.senders[m.IntN(len(m.senders))].collector.Add(rules.Hash(member), member, 1+m.Uint64N(3))
	}
	time.Sleep(modelStep)
	synctest.Wait()
	now := time.Now()
	m.mu.Lock()
	var due []modelPacket
	m.way = slices.DeleteFunc(m.way, func(p modelPacket) bool {
		if p.due.After(now) {
			return false
		}
		due = append(due, p)
		return true
	})
	m.mu.Unlock()
	slices.SortStableFunc(due, func(a, b modelPacket) int { return a.due.Compare(b.due) })
	for _, p := range []*modelProcess{m.twin, m.standby, m.live} {
		if p != nil {
			p.read(due, now)
		}
	}
	if now.UnixNano()/int64(time.Second) != now.Add(-modelStep).UnixNano()/int64(time.Second) {
		m.mu.Lock()
		hot := slices.Collect(maps.Keys(m.twin.hot))
		m.mu.Unlock()
		keys := make([]rules.Key, len(hot))
		for i := range hot {
			keys[i] = rules.Key{Rule: "r", Text: hot[i]}
		}
		for _, s := range m.senders {
			s.collector.Steer(published.Fleet{Instances: len(m.senders)}, keys)
		}
		if m.live != nil && m.claims.IsZero() && m.Float64() >= m.skip {
			m.live.source.saveSnapshot(t.Context())
		}
	}
	synctest.Wait()
	if m.live != nil && !m.claims.IsZero() && !now.Before(m.claims) {
		m.claims, m.resumed = time.Time{}, now
		hot := slices.Collect(maps.Values(m.redis))
		m.live.mu(func() { maps.Copy(m.live.hot, m.redis) })
		m.live.source.Inherit(hot)
		// Without a snapshot, the packets before the first one received from a sender are
		// unknown.
		none := m.live.source.Stats().Snapshot.Resumed == 0
		m.live.mu(func() { m.mistaken = m.mistaken || m.loss > 0 && none })
	}
}

func (p *modelProcess) mu(f func()) {
	p.m.mu.Lock()
	defer p.m.mu.Unlock()
	f()
}

// run runs steps for a time.
func (m *resumeModel) run(t testing.TB, d time.Duration) {
	for range int(d / modelStep) {
		m.step(t)
	}
}

// kill ends the live aggregator.
func (m *resumeModel) kill(t testing.TB, orderly bool) {
	if orderly {
		m.live.source.saveSnapshot(t.Context())
	}
	m.live.stop()
	m.redis, m.live, m.killed = m.live.hot, nil, time.Now()
}

// revive starts another aggregator, which becomes the publisher some time later.
func (m *resumeModel) revive(claims time.Duration) {
	m.live = m.start(&m.store, time.Now())
	m.claims = time.Now().Add(claims)
}

// restartSender restarts an instance.
func (m *resumeModel) restartSender(t testing.TB) {
	i := m.IntN(len(m.senders))
	name := m.senders[i].name
	m.senders[i].stop()
	for range 10 { // its last packets arrive before the restart
		m.step(t)
	}
	m.senders[i] = m.newSender(name)
	m.restarted = time.Now()
}

func newResumeModel(r *rand.Rand, thresholds ...rules.Threshold) *resumeModel {
	rule := hotRule("r", 1, time.Second)
	rule.Hot = thresholds
	m := &resumeModel{Rand: r, rules: testRules(rule, hotRule("other", 1_000_000, time.Second)), others: float64(r.IntN(8)), truth: make(map[string][]modelCount), redis: make(map[string]published.Hot), begins: time.Now()}
	m.rule = &m.rules.Rules[0]
	for _, q := range []string{"a", "b", "c", "d"} {
		m.texts = append(m.texts, "GET /s?q="+q)
	}
	for i := range 40 {
		m.texts = append(m.texts, fmt.Sprintf("GET /s?q=%d", i))
	}
	m.rates, m.debts = make([]float64, len(m.texts)), make([]float64, len(m.texts))
	m.twin = m.start(nil, time.Time{})
	m.live = m.start(&m.store, time.Time{})
	for i := range 1 + r.IntN(3) {
		m.senders = append(m.senders, m.newSender(fmt.Sprintf("api-%d", i)))
	}
	return m
}

func (m *resumeModel) end() {
	for _, s := range m.senders {
		s.stop()
	}
	m.twin.stop()
	if m.live != nil {
		m.live.stop()
	}
}

func randomResumeModel(r *rand.Rand) *resumeModel {
	var thresholds []rules.Threshold
	for range 1 + r.IntN(3) {
		per := []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}[r.IntN(4)]
		th := rules.NewThreshold(rules.Rate{N: 50 + r.Int64N(400), Per: per})
		th.Kind = []rules.ThresholdKind{rules.FixedRate, rules.FixedRate, rules.Share, rules.Top, rules.Jump}[r.IntN(5)]
		th.Factor, th.Top = rules.Fraction{Num: 2, Den: 1}, 1+r.IntN(2)
		if th.Kind == rules.Share {
			th.Factor = rules.Percent(40)
		}
		th.Hold, th.CoolDown = time.Duration(r.IntN(3000))*time.Millisecond, time.Duration(r.IntN(3000))*time.Millisecond
		thresholds = append(thresholds, th)
	}
	m := newResumeModel(r, thresholds...)
	m.mu.Lock() // the senders are there
	m.loss = []float64{0, 0, 0.02, 0.2}[r.IntN(4)]
	m.mu.Unlock()
	m.skip = []float64{0, 0.3, 0.6}[r.IntN(3)]
	m.kills = []int{400, 100}[r.IntN(2)]
	return m
}

// runRandom runs a minute in which anything may happen.
func (m *resumeModel) runRandom(t testing.TB) {
	down, planned := 0, -1
	for range 600 + m.IntN(2400) {
		if m.IntN(60) == 0 {
			h := &m.rule.Hot[m.IntN(len(m.rule.Hot))]
			of := []float64{0, 0, 0.3, 0.6, 0.75, 1.1, 2}[m.IntN(7)]
			m.rates[m.IntN(len(m.texts))*m.IntN(2)] = of * float64(h.Rate.N) * float64(modelStep) / float64(h.Rate.Per)
		}
		switch {
		case m.live == nil:
			if down--; down <= 0 {
				m.revive(time.Duration(m.IntN(1500)) * time.Millisecond)
			}
		case m.IntN(m.kills) == 0:
			m.kill(t, m.IntN(3) == 0)
			down = m.IntN(150)
		}
		switch {
		case planned > 0:
			planned--
		case planned == 0:
			m.restartSender(t)
			planned = -1
		case m.IntN(600) == 0: // losses after the last packet of a sender are noticed by no one
			planned = 30
			m.mu.Lock()
			for _, s := range m.senders {
				s.lossless = time.Now().Add(2 * time.Second)
			}
			m.mu.Unlock()
		}
		m.step(t)
	}
}
