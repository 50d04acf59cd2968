package kafkasource

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// everywhere returns a key in each partition.
func everywhere(partitions int) map[int32][]string {
	keys := make(map[int32][]string)
	for p := range int32(partitions) {
		keys[p] = []string{fmt.Sprint("q=", p)}
	}
	return keys
}

// allHot waits until each key of everywhere is hot.
func (w *world) allHot(partitions int) {
	w.Helper()
	w.until("all keys hot", func() bool {
		for p := range partitions {
			if !w.redis.hot(fmt.Sprint("q=", p)) {
				return false
			}
		}
		return true
	})
}

// unchanged fails if a key became hot twice or cooled.
func (w *world) unchanged(partitions int) {
	w.Helper()
	w.redis.mu.Lock()
	n := len(w.redis.changes)
	w.redis.mu.Unlock()
	if n != partitions {
		w.Errorf("want each of %d keys hot once, and nothing else\n%s", partitions, w.redis)
	}
}

// total returns the number of partitions that the members have.
func total(members ...*member) (n int) {
	for _, m := range members {
		n += len(m.Stats().Partitions)
	}
	return n
}

// Members that join, leave or come back under the same name change nothing in the hot set.
func TestRebalancesChangeNothing(t *testing.T) {
	for _, static := range []bool{false, true} {
		t.Run(fmt.Sprint("static=", static), func(t *testing.T) {
			inWorld(t, 3, 6, func(w *world) {
				named := func(name string) func(*Config) {
					return func(c *Config) {
						if static {
							c.Member = name
						}
					}
				}
				first := w.join(named("first"))
				w.has(first, 6)
				w.instance("a", 6).runs(everywhere(6))
				w.instance("b", 6).runs(nil)
				w.allHot(6)

				second := w.join(named("second"))
				w.has(second, 3)
				w.has(first, 3)
				time.Sleep(10 * time.Second)
				w.unchanged(6)

				second.stop()
				if static {
					time.Sleep(500 * time.Millisecond)
					if n := total(first); n != 3 {
						w.Errorf("%d partitions, want a static member's kept for it", n)
					}
					second = w.join(named("second"))
					w.has(second, 3)
				}
				time.Sleep(10 * time.Second)
				w.unchanged(6)
				if n := total(first, second); !static && n != 6 || static && n != 6 {
					w.Errorf("%d partitions are taken, want 6", n)
				}
				if s := first.Stats(); s.Decoder.LostPackets != 0 || s.Decoder.Duplicates != 0 || s.Lost != 0 {
					w.Errorf("%+v", s)
				}
			})
		})
	}
}

// A member that receives nothing for a while, as if it were stopped, is replaced within a
// session. When it continues it writes nothing, and joins again.
func TestPausedMemberIsReplaced(t *testing.T) {
	inWorld(t, 3, 6, func(w *world) {
		link := newLink(w)
		paused, other := w.joinBy(link), w.join()
		w.has(paused, 3)
		w.has(other, 3)
		w.instance("a", 6).runs(everywhere(6))
		w.allHot(6)

		link.cut()
		begin := time.Now()
		w.has(other, 6)
		if took := time.Since(begin); took > 3*time.Second {
			w.Errorf("taken over after %v, want a session and little more", took)
		}
		time.Sleep(10*time.Second - time.Since(begin))
		w.unchanged(6)
		for _, p := range paused.Stats().Partitions {
			if !p.Frozen {
				w.Errorf("%+v, want it frozen", p)
			}
		}
		link.mend()
		w.has(paused, 3)
		time.Sleep(10 * time.Second)
		w.unchanged(6)
		if n := total(paused, other); n != 6 {
			w.Errorf("%d partitions, want each with one member", n)
		}
		if s := paused.Stats(); s.Lost != 3 {
			w.Errorf("lost %d partitions, want 3", s.Lost)
		}
	})
}

// While all of Kafka is unavailable, silent or refusing, nothing cools, and hot keys stay
// published. Afterwards the partitions are taken over again.
func TestKafkaIsAway(t *testing.T) {
	for _, refuses := range []bool{false, true} {
		t.Run(fmt.Sprint("refuses=", refuses), func(t *testing.T) {
			inWorld(t, 3, 3, func(w *world) {
				link := newLink(w)
				m := w.joinBy(link)
				w.has(m, 3)
				w.instance("a", 3).runs(everywhere(3))
				w.allHot(3)
				if link.cut(); refuses {
					link.refuse()
				}
				time.Sleep(30 * time.Second)
				w.unchanged(3)
				s := m.Stats()
				for _, p := range s.Partitions {
					if !p.Frozen || !w.redis.publishes(p.Partition) {
						w.Errorf("%+v, want it frozen and published", p)
					}
				}
				if len(s.Partitions) != 3 || refuses && s.Lost != 3 {
					w.Errorf("%d partitions, %d of them lost, want 3", len(s.Partitions), s.Lost)
				}
				link.mend()
				w.until("the partitions to come again", func() bool { return m.Stats().Assigned == 6 })
				time.Sleep(20 * time.Second)
				w.unchanged(3)
				if s = m.Stats(); s.Lost != 3 || len(s.Partitions) != 3 {
					w.Errorf("%d partitions, %d lost before, want 3", len(s.Partitions), s.Lost)
				}
				for _, p := range s.Partitions {
					if p.Frozen || p.Records > 5 {
						w.Errorf("%+v, want it going on", p)
					}
				}
			})
		})
	}
}

// An outage in which no instance could write does not count as silence: a source that takes over
// when it ends cools nothing.
func TestOutageIsNoSilence(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		first := w.join()
		w.has(first, 2)
		stop := w.instance("a", 2).runs(everywhere(2))
		w.allHot(2)
		first.stop()
		stop()
		time.Sleep(30 * time.Second)
		second := w.join()
		w.has(second, 2)
		time.Sleep(8 * time.Second)
		stop = w.instance("a", 2).runs(everywhere(2))
		time.Sleep(10 * time.Second)
		w.unchanged(2)
		stop()
		w.until("all cool", func() bool { return !w.redis.hot("q=0") && !w.redis.hot("q=1") })
	})
}

// publishes reports whether the holder of a partition runs.
func (r *redis) publishes(partition int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.holders[partition]
	return p != nil && p.runs
}

// joinBy runs a source whose connections use a link.
func (w *world) joinBy(l *link) *member {
	w.T.Helper()
	w.dial = l.DialContext
	defer func() { w.dial = nil }()
	return w.join()
}

// link is a network that can be cut: its traffic waits, or its connections break.
type link struct {
	world   *world
	addr    string // address of the broker whose connections can be cut, or empty for all
	mu      sync.Mutex
	open    chan struct{} // closed while it is whole
	refuses bool
	broken  context.CancelFunc // breaks all connections
	life    context.Context
}

func newLink(w *world) *link {
	l := &link{world: w, open: make(chan struct{})}
	l.life, l.broken = context.WithCancel(context.Background())
	w.stops = append(w.stops, l.refuse)
	close(l.open)
	return l
}

func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = make(chan struct{})
}

// refuse breaks all connections, and lets none be made.
func (l *link) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = true
	l.broken()
}

func (l *link) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.open)
	if l.refuses {
		l.refuses = false
		l.life, l.broken = context.WithCancel(context.Background())
	}
}

func (l *link) wait(ctx context.Context) error {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.addr != "" && addr != l.addr {
		return l.world.network.DialContext(ctx, network, addr)
	}
	l.mu.Lock()
	life, refuses := l.life, l.refuses
	l.mu.Unlock()
	if refuses {
		return nil, syscall.ECONNREFUSED
	}
	if err := l.wait(ctx); err != nil {
		return nil, err
	}
	c, err := l.world.network.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	life, cancel := context.WithCancel(life)
	context.AfterFunc(life, func() {
		c.Close()
		far.Close()
	})
	pump := func(to, from net.Conn) {
		defer cancel()
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if err != nil || l.wait(life) != nil {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go pump(c, far)
	go pump(far, c)
	return near, nil
}

// While Redis is unavailable a partition is still counted. Its new hot keys are published when
// Redis is back, and the earlier set is taken over.
func TestAdoptionWaitsForRedis(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		first := w.join()
		w.has(first, 2)
		w.instance("a", 2).runs(map[int32][]string{0: {"q=old"}})
		w.until("the key hot", func() bool { return w.redis.hot("q=old") })
		w.redis.setAway(true)
		first.stop()
		second := w.join()
		w.instance("b", 2).runs(map[int32][]string{0: {"q=new"}, 1: {"q=other"}})
		time.Sleep(5 * time.Second)
		if w.redis.hot("q=new") || second.Stats().Partitions[0].Adopted || second.Stats().AdoptFailures == 0 {
			w.Errorf("%+v, want nothing adopted yet\n%s", second.Stats(), w.redis)
		}
		w.redis.setAway(false)
		w.until("all keys hot", func() bool { return w.redis.hot("q=new") && w.redis.hot("q=other") && w.redis.hot("q=old") })
		time.Sleep(5 * time.Second)
		if n := len(w.redis.changes); n != 3 {
			w.Errorf("%d changes, want three keys hot\n%s", n, w.redis)
		}
		if n := second.log.count("cannot take"); n != 2 {
			w.Errorf("told %d times, want once for each partition", n)
		}
	})
}

func (r *redis) setAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// When a topic grows it is read from the start: nothing cools, and the new partitions are read.
func TestPartitionsAreAdded(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		m := w.join()
		w.has(m, 2)
		stop := w.instance("a", 2).runs(everywhere(2))
		w.allHot(2)
		if _, err := w.admin.UpdatePartitions(context.Background(), 4, m.cfg.Topic); err != nil {
			w.Fatal(err)
		}
		w.client.ForceMetadataRefresh()
		w.has(m, 4)
		time.Sleep(5 * time.Second)
		w.unchanged(2)
		if s := m.Stats(); s.Resizes != 1 || s.Mismatched == 0 {
			w.Errorf("%d resizes, %d of senders that do not know: want 1 and some", s.Resizes, s.Mismatched)
		}
		stop()
		w.instance("b", 4).runs(everywhere(4))
		w.allHot(4)
		time.Sleep(5 * time.Second)
		w.unchanged(4)
	})
}

// When the topic grows, the counts of a window are counted again, and once.
func TestGrowthKeepsWindows(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		m := w.join(func(c *Config) {
			c.Rules = &rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 300, time.Minute)}}
		})
		w.has(m, 1)
		a := w.instance("a", 1)
		a.send(a.record(0, 0, line("q=1", 200), line("q=2", 160)))
		a.runs(nil)
		time.Sleep(5 * time.Second)
		if _, err := w.admin.UpdatePartitions(context.Background(), 2, m.cfg.Topic); err != nil {
			w.Fatal(err)
		}
		w.has(m, 2)
		a.send(a.record(0, 0, line("q=1", 100), line("q=2", 100)))
		w.until("the key hot", func() bool { return w.redis.hot("q=1") })
		time.Sleep(time.Second)
		if w.redis.hot("q=2") {
			w.Error("a key with 260 of 300 is hot")
		}
	})
}

// Only the publisher of the lowest partition receives the instances.
func TestInstancesAreToldOnce(t *testing.T) {
	inWorld(t, 1, 3, func(w *world) {
		m := w.join()
		w.has(m, 3)
		w.instance("b", 3).runs(nil)
		a := w.instance("a", 3)
		a.send(a.record(1, 0))
		w.until("both instances", func() bool {
			w.redis.mu.Lock()
			defer w.redis.mu.Unlock()
			return len(w.redis.heard) == 2 && w.redis.heard[0].Name == "a"
		})
		w.redis.mu.Lock()
		if len(w.redis.tellers) != 1 || !w.redis.tellers[0] {
			w.Errorf("told by partitions %v, want 0 alone", w.redis.tellers)
		}
		w.redis.mu.Unlock()
		time.Sleep(12 * time.Second)
		w.until("one instance", func() bool {
			w.redis.mu.Lock()
			defer w.redis.mu.Unlock()
			return len(w.redis.heard) == 1 && w.redis.heard[0].Name == "b"
		})
	})
}

// A worker that is too slow delays its own partition, and not the group.
func TestSlowPartitionIsPaused(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		free := make(chan struct{})
		m := w.join(func(c *Config) {
			make := c.Publisher
			c.Publisher = func(p int32) (PartitionPublisher, error) {
				if p == 1 {
					<-free
				}
				return make(p)
			}
		})
		w.until("a partition", func() bool { return total(m) == 2 && m.Stats().Partitions[0].Adopted })
		w.instance("a", 2).runs(everywhere(2))
		w.until("the key of the other partition", func() bool { return w.redis.hot("q=0") })
		time.Sleep(10 * time.Second)
		if s := m.Stats(); s.Pauses != 1 || s.Lost != 0 || w.redis.hot("q=1") {
			w.Errorf("%+v, want one pause and no loss", s)
		}
		close(free)
		w.allHot(2)
		w.has(m, 2)
		time.Sleep(5 * time.Second)
		w.unchanged(2)
		if s := m.Stats(); s.Decoder.LostPackets != 0 || s.Decoder.Duplicates != 0 {
			w.Errorf("%+v, want each record once", s.Decoder)
		}
	})
}

// A refusal by the brokers is reported, and ends the source.
func TestRefusalEndsTheSource(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		m := w.join(func(c *Config) { c.Session = time.Hour })
		time.Sleep(5 * time.Second)
		m.stop()
		if m.err == nil || m.log.count("cannot read") != 0 {
			w.Errorf("%v, want an error about the session", m.err)
		}
	})
	inWorld(t, 1, 1, func(w *world) {
		m := w.join(func(c *Config) {
			c.Publisher = func(int32) (PartitionPublisher, error) { return nil, errAway }
		})
		time.Sleep(5 * time.Second)
		m.stop()
		if m.err == nil {
			w.Error("no error, want that of the publisher")
		}
	})
}

// A lost partition that goes to another member is given up.
func TestLostPartitionIsGivenUp(t *testing.T) {
	w := bench(t)
	s, ended := w.source, false
	w.stop = func() { ended = true }
	s.workers[0] = w
	s.onLost(t.Context(), nil, map[string][]int32{s.cfg.Topic: {0, 1}})
	if s.dropLost([]int32{0}); ended || len(s.ownedWorkers()) != 0 || s.stats.Lost.Load() != 1 {
		t.Error("given up when it came again")
	}
	if s.dropLost([]int32{1}); !ended || len(s.workers) != 0 {
		t.Error("not given up when it did not")
	}
}
