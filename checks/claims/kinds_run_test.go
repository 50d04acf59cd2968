//go:build !race

// These runs take one goroutine: they have no races, and are slow under the race detector.

package claims

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// KindsCase is a run of rules of any kind, written as in a file, and the exact count of the same
// requests. A key that is found hot by a threshold that compares it with other keys, or with its
// own past, is truly so, whatever is held back or lost. For claims about bounds see [Case].
type KindsCase struct {
	Rules     []exact.RuleSpec
	Instances int
	Lines     int // as for Case; 0: as many as there are
	Network   Network
	Length    time.Duration
	Seed      uint64
	// Requests calls add for each request of the 10 ms with that number.
	Requests func(random *rand.Rand, number int64, add func(target string))
	// InARow allows the loss of several packets in a row.
	InARow bool
	// Kafka delivers the packets that get through in order, and without their buckets.
	Kafka bool
	// Dropped returns the share of records that find the queue full, by the time since the first.
	Dropped func(since time.Duration) float64
	// Tail is requested at each instance in the second after the end, so that the last losses are
	// noticed.
	Tail string
}

// KindsResult holds the hot keys of each rule.
type KindsResult struct {
	Exact, Found []map[string]bool // keys that were hot, by rule
	Wrong        []string          // hot when the exact count was not near it, or cool too early
	Lost         int64             // packets
}

// step is the time between requests, quiet the time without any before the first.
const (
	step  = int64(10 * time.Millisecond)
	quiet = 60 * second
)

// RunKinds runs a case.
func RunKinds(ctx context.Context, c KindsCase) (KindsResult, error) {
	k, err := newKinds(c)
	if err != nil {
		return KindsResult{}, err
	}
	began := k.began
	// Both counters have seen all of the first baselines, in which nothing arrived.
	k.deliver(began - quiet)
	for _, counter := range k.counters {
		counter.Tick(began - quiet)
	}
	random := rand.New(rand.NewPCG(c.Seed, 2))
	for at := began; at < began+int64(c.Length); at += step {
		if err := ctx.Err(); err != nil {
			return KindsResult{}, err
		}
		k.deliver(at)
		instance := 0
		c.Requests(random, (at-began)/step, func(target string) {
			k.request(at, instance%c.Instances, target)
			instance++
		})
		if next := at + step; next%tenthSecond == 0 {
			k.flush(next-tenthSecond, next)
		}
	}
	end := began + int64(c.Length)
	for last := end + second; end < last; end += step {
		k.deliver(end)
		for instance := range c.Instances {
			if c.Tail != "" {
				k.request(end, instance, c.Tail)
			}
		}
		if next := end + step; next%tenthSecond == 0 {
			k.flush(next-tenthSecond, next)
		}
	}
	for _, counter := range k.counters {
		counter.Tick(end + 100*second) // what is hot to the end cools
	}
	return k.result(), nil
}

// kinds is a running case.
type kinds struct {
	KindsCase
	collectors []*collector.Collector
	decoder    *decode.Decoder
	detector   hearing
	counters   []*exact.Counter
	members    [][]byte

	began  int64
	random *rand.Rand
	flight flight
	order  uint64
	lost   int64
	now    int64
	member []byte

	hot       map[rules.Key]bool
	suspects  []rules.Key
	changed   bool
	onRefresh func([]published.Hot)
	spans     []map[string][]found
	asked     []map[string][]int64 // when each key was asked for, by rule
}

// found is an event that the aggregator published, with the counts that it had received.
type found struct {
	exact.HotChange
	heard []arrived // counts of the key that had arrived
}

func newKinds(c KindsCase) (*kinds, error) {
	var file strings.Builder
	file.WriteString("rules:\n")
	k := &kinds{KindsCase: c, began: time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC).UnixNano(), random: rand.New(rand.NewPCG(c.Seed, 1)), hot: make(map[rules.Key]bool)}
	for i, r := range c.Rules {
		file.WriteString(r.YAML(ruleID(i)))
		k.counters = append(k.counters, exact.NewCounter(r))
		k.members = append(k.members, []byte(ruleID(i)+" "))
		k.spans = append(k.spans, make(map[string][]found))
		k.asked = append(k.asked, make(map[string][]int64))
	}
	parsed, err := config.Parse("rules.yaml", []byte(file.String()))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, file.String())
	}
	ruleset := parsed.Rules
	for i := range c.Instances {
		col, err := newCollector(i, statsdsink.Config{Sender: &kindsTap{kinds: k}}, collector.Config{Rules: ruleset, Budget: c.Lines, Urgent: -1})
		if err != nil {
			return nil, err
		}
		k.collectors = append(k.collectors, col)
	}
	k.decoder = decode.NewDecoder(ruleset, wire.Plain)
	k.detector.heard = make(map[rules.Key][]arrived)
	k.detector.Detector = aggregator.NewDetector(aggregator.DetectorConfig{Rules: ruleset, Publisher: k, Grace: grace, Lag: lag})
	return k, nil
}

// request counts one request at an instance and in the exact count.
func (k *kinds) request(instant int64, instance int, target string) {
	keys := make(map[string][]string, 1)
	for i, rule := range k.Rules {
		if _, made := keys[rule.By]; !made {
			keys[rule.By] = exact.Keys(rule.By, "GET", target)
		}
		k.counters[i].Tick(instant)
		for _, key := range keys[rule.By] {
			k.counters[i].Add(instant, key, 1)
			k.asked[i][key] = append(k.asked[i][key], instant)
			k.member = append(append(k.member[:0], k.members[i]...), key...)
			k.collectors[instance].Add(rules.Hash(k.member), k.member, 1)
		}
	}
}

func (k *kinds) flush(from, cut int64) {
	k.now = cut
	if k.changed {
		k.changed = false
		fleet := published.Fleet{Instances: k.KindsCase.Instances, Suspects: k.suspects}
		var hot []rules.Key
		for key := range k.hot {
			hot = append(hot, key)
		}
		slices.SortFunc(hot, func(a, b rules.Key) int {
			return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Text, b.Text))
		})
		for _, c := range k.collectors {
			c.Steer(fleet, hot)
		}
	}
	for _, c := range k.collectors {
		c.Flush(context.Background(), time.Unix(0, from))
	}
}

// kindsTap is the end of the network at one instance.
type kindsTap struct {
	*kinds
	// The next packet always arrives after a loss, unless InARow is set: a receiver notices a
	// loss when the next packet arrives, and that should be within the lag.
	through bool
	first   int64 // when the first packet was sent
}

// Send puts a packet on the network, unless it is lost or dropped.
func (t *kindsTap) Send(text []byte) (int, error) {
	k := t.kinds
	copies := 1
	if t.first == 0 {
		t.first = k.now
	}
	// An aggregator does not learn of packets that an instance sent before the first one that
	// arrives. So all packets get through until the first one must have arrived.
	through := t.through || k.now <= t.first+int64(k.Network.Most)
	t.through = false
	switch {
	case k.Dropped != nil && k.random.Float64() < k.Dropped(time.Duration(k.now-k.began)):
		k.lost++
		copies = 0
	case through:
	case k.Network.Lost > 0 && k.random.Float64() < k.Network.Lost:
		k.lost++
		copies, t.through = 0, !k.InARow
	case k.Network.Doubled > 0 && k.random.Float64() < k.Network.Doubled:
		copies = 2
	}
	for range copies {
		k.order++
		arrives := k.now + k.Network.delay(k.random)
		heap.Push(&k.flight, packet{arrives: arrives, order: k.order, bytes: bytes.Clone(text)})
	}
	return len(text), nil
}

// Close does nothing. Send needs it for its interface.
func (t *kindsTap) Close() error { return nil }

// deliver passes the packets that arrive up to an instant to the aggregator.
func (k *kinds) deliver(until int64) {
	for k.flight.Len() > 0 && k.flight[0].arrives <= until {
		p := heap.Pop(&k.flight).(packet)
		k.detector.Advance(time.Unix(0, p.arrives))
		if !k.Kafka {
			k.decoder.Packet(p.bytes, time.Unix(0, p.arrives), k.detector)
			continue
		}
		head, lines, _ := bytes.Cut(p.bytes, []byte{'\n'})
		m, err := wire.ParseMeta(head)
		if err != nil {
			panic(err)
		}
		m.Buckets = nil
		k.decoder.Record(&m, lines, time.Unix(0, p.arrives), true, k.detector)
	}
	if until%tick == 0 {
		k.decoder.Advance(time.Unix(0, until), k.detector)
		k.detector.Advance(time.Unix(0, until))
	}
	if until%second == 0 {
		k.detector.Refresh()
	}
}

// Publish implements [aggregator.Publisher].
func (k *kinds) Publish(change published.Change) {
	record := func(h published.Hot, hot bool, at time.Time) {
		var rule int
		_, _ = fmt.Sscanf(h.Key.Rule, "r%d", &rule)
		k.spans[rule][h.Key.Text] = append(k.spans[rule][h.Key.Text], found{
			exact.HotChange{Hot: hot, At: at.UnixNano(), Low: h.Low, High: h.High}, k.detector.heard[h.Key],
		})
		k.hot[h.Key] = hot
		if !hot {
			delete(k.hot, h.Key)
		}
		k.changed = true
	}
	for _, h := range change.Cool {
		record(h, false, h.Until)
	}
	for _, h := range change.Hot {
		record(h, true, h.Since)
	}
}

// Refresh implements [aggregator.Publisher].
func (k *kinds) Refresh(_ int, hot []published.Hot) {
	if k.onRefresh != nil {
		k.onRefresh(hot)
	}
}

// Suspects implements [aggregator.Publisher].
func (k *kinds) Suspects(_ int, suspects []published.Hot) {
	k.suspects = k.suspects[:0:0]
	for _, h := range suspects {
		k.suspects = append(k.suspects, h.Key)
	}
	k.changed = true
}

// Instances implements [aggregator.Publisher].
func (k *kinds) Instances([]published.Instance) {}

// result compares the published events with the exact count.
func (k *kinds) result() (r KindsResult) {
	r.Lost = k.lost
	for i, c := range k.counters {
		want := c.Result()
		exactly, found := make(map[string]bool), make(map[string]bool)
		for key := range want.Events {
			exactly[key] = true
		}
		for key, events := range k.spans[i] {
			found[key] = true
			for _, e := range events {
				switch {
				case e.Hot && !near(want.Events[key], e.At, int64(k.Rules[i].Hot[0].D)) && !k.jumps(i, key, e):
					r.Wrong = append(r.Wrong, fmt.Sprintf("%s %s is hot at %s", ruleID(i), key, timeOfDay(e.At)))
				case !e.Hot:
					if need, n := c.Needs(0, key, e.At-exact.NewWindow(k.Rules[i].Hot[0].D).Width); n >= need.Exit {
						r.Wrong = append(r.Wrong, fmt.Sprintf("%s %s is cool at %s with %d to %d, truly %d, the exit is %d", ruleID(i), key, timeOfDay(e.At), e.Low, e.High, n, need.Exit))
					}
				}
			}
		}
		r.Exact, r.Found = append(r.Exact, exactly), append(r.Found, found)
	}
	return r
}

// near reports whether a key was hot at an instant by the exact count, or became hot within a
// window after it. Counts that are held back are placed at the time of their oldest part.
func near(events []exact.HotChange, instant, window int64) bool {
	for i, e := range events {
		if e.Hot && e.At-window <= instant && (i+1 == len(events) || instant <= events[i+1].At) {
			return true
		}
	}
	return false
}
