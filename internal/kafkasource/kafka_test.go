package kafkasource

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/aggregatortest"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// world is a cluster in this process, on the clock of a synctest bubble, and the
// Redis that the sources publish to.
type world struct {
	*testing.T
	cluster *kfake.Cluster
	network kfake.VirtualNetwork
	redis   *redis
	dial    func(context.Context, string, string) (net.Conn, error) // dialer of the next source, or nil for the network's
	client  *kgo.Client                                             // of tools and producers
	admin   *kadm.Client
	members []*member
	stops   []func()
}

// inWorld runs a test with a topic of so many partitions on so many brokers. more returns further
// options of the cluster once its network exists.
func inWorld(t *testing.T, brokers int, partitions int32, test func(*world), more ...func(*world) kfake.Opt) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, redis: &redis{entries: make(map[rules.Key]entry), holders: make(map[int32]*publisher), tellers: make(map[int32]bool), judged: make(map[int32]time.Time)}}
		ports := make([]int, brokers)
		for i := range ports {
			ports[i] = 9092 + i
		}
		opts := []kfake.Opt{
			kfake.Ports(ports...), kfake.ListenFn(w.network.Listen),
			kfake.SeedTopics(partitions, wire.DefaultTopic),
			kfake.GroupMinSessionTimeout(time.Second),
			kfake.BrokerConfigs(map[string]string{"log.message.timestamp.type": "LogAppendTime"}),
		}
		for _, opt := range more {
			opts = append(opts, opt(w))
		}
		cluster, err := kfake.NewCluster(opts...)
		if err != nil {
			t.Fatal(err)
		}
		w.cluster = cluster
		w.client = w.newClient()
		w.admin = kadm.NewClient(w.client)
		defer func() {
			for _, stop := range slices.Backward(w.stops) {
				stop()
			}
			w.client.Close()
			cluster.Close()
		}()
		test(w)
	})
}

// newClient returns a client for tools and producers.
func (w *world) newClient() *kgo.Client {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(w.cluster.ListenAddrs()...), kgo.Dialer(w.network.DialContext),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerLinger(0), kgo.MetadataMinAge(50*time.Millisecond),
	)
	if err != nil {
		w.Fatal(err)
	}
	return client
}

// quick returns a rule for keys of 100/s that cool 2 s after their end.
func quick() rules.Rule {
	r := hotRule("r", 100, time.Second)
	r.Hot[0].Hold, r.Hot[0].CoolDown = 0, 2*time.Second
	return r
}

// member is a running source.
type member struct {
	*Source
	stop func() // waits
	err  error  // set when it has ended
	log  *logged
}

// join runs a source.
func (w *world) join(change ...func(*Config)) *member {
	w.Helper()
	m := &member{log: new(logged)}
	c := Config{
		Connection: kafka.Connection{Brokers: w.cluster.ListenAddrs()},
		Session:    1500 * time.Millisecond,
		Rules:      &rules.Rules{Namespace: "shop", Rules: []rules.Rule{quick()}},
		Publisher:  w.redis.publisher,
		Log:        slog.New(slog.NewTextHandler(m.log, nil)),
	}
	for _, f := range change {
		f(&c)
	}
	m.Source = New(c)
	dial := w.network.DialContext
	if w.dial != nil {
		dial = w.dial
	}
	// Fetches that wait longer make the bubble's clock advance faster.
	m.commitEvery = 5 * time.Second
	m.extra = []kgo.Opt{kgo.Dialer(dial), kgo.FetchMaxWait(time.Second), kgo.FetchMinBytes(1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.err = m.Run(ctx)
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	w.stops = append(w.stops, m.stop)
	w.members = append(w.members, m)
	return m
}

// logged keeps the logged lines.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, string(line))
	return len(line), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "")
}

func (l *logged) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}

// has waits until a member has so many partitions and has read all of them.
func (w *world) has(m *member, partitions int) {
	w.Helper()
	w.until(fmt.Sprintf("%d partitions", partitions), func() bool {
		s := m.Stats()
		ready := 0
		for _, p := range s.Partitions {
			if p.Covered && p.Adopted {
				ready++
			}
		}
		return len(s.Partitions) == partitions && ready == partitions
	})
}

// until waits for a condition, at most 30 s of the bubble's clock.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	for i, m := range w.members {
		w.Logf("member %d: %+v\n%s", i, m.Stats(), m.log)
	}
	w.Fatalf("in vain: %s\n%s", what, w.redis)
}

// instance is a program that sends counts.
type instance struct {
	*world
	name  string
	seqs  map[int32]uint64
	clock time.Duration // time by which its clock is ahead
	parts int
	mu    sync.Mutex
}

func (w *world) instance(name string, partitions int) *instance {
	return &instance{world: w, name: name, seqs: make(map[int32]uint64), parts: partitions}
}

// record returns a record of counts that began a while ago.
func (i *instance) record(partition int32, age time.Duration, lines ...string) *kgo.Record {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seqs[partition]++
	return headed(&wire.RecordHead{
		Meta: wire.Meta{Instance: []byte(i.name), Incarnation: 7, Seq: i.seqs[partition],
			Start: time.Now().Add(i.clock - age).UnixNano(), Held: 1},
		Namespace: []byte("shop"), Partitions: i.parts,
	}, partition, lines...)
}

func headed(head *wire.RecordHead, partition int32, lines ...string) *kgo.Record {
	r := &kgo.Record{Topic: wire.DefaultTopic, Partition: partition, Value: []byte(strings.Join(lines, "\n"))}
	for _, h := range wire.AppendRecordHead(nil, head) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return r
}

// send sends records without waiting for the answer.
func (w *world) send(records ...*kgo.Record) {
	for _, r := range records {
		w.client.Produce(context.Background(), r, nil)
	}
}

// runs sends heartbeats each second, and 20 of each key each 100 ms, until it is stopped. keys
// are by partition.
func (i *instance) runs(keys map[int32][]string) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ctx.Err() == nil; n++ {
			for p := range int32(i.parts) {
				var lines []string
				for _, key := range keys[p] {
					lines = append(lines, line(key, 20))
				}
				if len(lines) > 0 || n%10 == 0 {
					i.send(i.record(p, 100*time.Millisecond, lines...))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	i.stops = append(i.stops, stop)
	return stop
}

func line(key string, n int) string { return fmt.Sprintf("shop.r.hot_param.%s:%d|c", key, n) }

// redis is the published set. Each partition's part belongs to the newest holder, and then to one
// that was fenced off and still runs.
type redis struct {
	mu      sync.Mutex
	away    bool
	entries map[rules.Key]entry
	holders map[int32]*publisher
	changes []string
	running []*publisher
	heard   []published.Instance
	tellers map[int32]bool // partitions that received the instances
	judged  map[int32]time.Time
}

type entry struct {
	published.Hot
	owner int32
}

func (r *redis) publisher(partition int32) (PartitionPublisher, error) {
	return &publisher{redis: r, partition: partition}, nil
}

func (r *redis) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprintf("hot %v\nchanges\n%s", slices.Collect(maps.Keys(r.entries)), strings.Join(r.changes, "\n"))
}

// hot reports whether a key is published.
func (r *redis) hot(text string) bool { return r.owner(text) >= 0 }

func (r *redis) owner(text string) int32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.entries[rules.Key{Rule: "r", Text: text}]; ok {
		return e.owner
	}
	return -1
}

// cooled returns how often a key cooled.
func (r *redis) cooled(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.changes {
		if strings.HasSuffix(c, "cool r "+text) {
			n++
		}
	}
	return n
}

// publisher writes one partition's part at once.
type publisher struct {
	*redis
	partition int32
	runs      bool
	wanted    []published.Change // changes found before it runs, or while it is fenced off
	suspects  []published.Hot
	refreshed []published.Hot
}

var errAway = errors.New("redis is away")

func (p *publisher) Adopt(context.Context) (hot []published.Hot, judged time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away {
		return nil, judged, errAway
	}
	p.holders[p.partition] = p
	for _, e := range p.entries {
		if e.owner == p.partition {
			hot = append(hot, e.Hot)
		}
	}
	return hot, p.judged[p.partition], nil
}

func (p *publisher) Judged(until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.holders[p.partition] == p && p.judged != nil {
		p.judged[p.partition] = until
	}
}

func (p *publisher) Run(ctx context.Context) error {
	p.start()
	<-ctx.Done()
	p.end()
	return nil
}

func (p *publisher) start() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = true
	p.running = append(p.running, p)
	p.publishWanted()
}

// end leaves the partition's part to the newest other publisher that runs, as the real Redis does.
func (p *publisher) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = false
	p.running = slices.DeleteFunc(p.running, func(other *publisher) bool { return other == p })
	if p.holders[p.partition] != p {
		return
	}
	for _, other := range slices.Backward(p.running) {
		if other.partition == p.partition {
			p.holders[p.partition] = other
			other.publishWanted()
			return
		}
	}
}

func (p *publisher) Publish(c published.Change) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = append(p.wanted, c)
	p.publishWanted()
}

// publishWanted publishes all changes if p may. The caller holds the lock.
func (p *publisher) publishWanted() {
	if !p.runs || p.holders[p.partition] != p {
		return
	}
	for _, c := range p.wanted {
		p.apply(c)
	}
	p.wanted = nil
}

func (p *publisher) apply(c published.Change) {
	at := time.Now().Format("05.000")
	for _, h := range c.Hot {
		if _, ok := p.entries[h.Key]; !ok {
			p.changes = append(p.changes, fmt.Sprintf("%s %d hot %v", at, p.partition, h.Key))
		}
		p.entries[h.Key] = entry{h, p.partition}
	}
	for _, h := range c.Cool {
		if e, ok := p.entries[h.Key]; ok && e.owner == p.partition {
			p.changes = append(p.changes, fmt.Sprintf("%s %d cool %v", at, p.partition, h.Key))
			delete(p.entries, h.Key)
		}
	}
}

func (p *publisher) Refresh(_ int, hot []published.Hot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refreshed = slices.Clone(hot)
}

func (p *publisher) Suspects(_ int, suspects []published.Hot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.suspects = slices.Clone(suspects)
}

func (p *publisher) Instances(all []published.Instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = slices.Clone(all)
	p.tellers[p.partition] = true
}

var (
	hotRule = aggregatortest.HotRule
)
