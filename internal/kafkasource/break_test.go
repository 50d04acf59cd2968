package kafkasource

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// outageMix is an outage in which Kafka delivers or accepts nothing, with the times at which
// instances return.
type outageMix struct {
	lasts    time.Duration
	readable bool            // brokers answer readers all the time; they only take nothing
	returns  []time.Duration // times after the end, by instance
	dies     int             // instance that never returns, or -1 for none
	session  time.Duration   // short: the group forgets its members
	restarts bool            // the source restarts in the outage
	members  int
	refuses  bool // connections break instead of waiting
}

func (m outageMix) String() string {
	return fmt.Sprintf("%v, readable %v, returns %v, dies %d, session %v, restarts %v, members %d, refuses %v",
		m.lasts, m.readable, m.returns, m.dies, m.session, m.restarts, m.members, m.refuses)
}

func newOutageMix(r *rand.Rand) outageMix {
	upTo := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	m := outageMix{
		lasts: 500*time.Millisecond + upTo(60*time.Second), readable: r.IntN(4) == 0, dies: r.IntN(6) - 3,
		session: 1500 * time.Millisecond, restarts: r.IntN(4) == 0, members: 1 + r.IntN(2), refuses: r.IntN(2) == 0,
	}
	if m.dies < 0 {
		m.dies = -1
	}
	if !m.restarts && r.IntN(2) == 0 { // else the group waits for a member that could not leave it
		m.session = 90 * time.Second
	}
	back := 7500 * time.Millisecond
	if m.readable {
		m.lasts, back = min(m.lasts, 7*time.Second), 2*time.Second // after longer ones it is unknown whether any instance is left
	}
	if m.lasts < maxPause {
		back = 2 * time.Second // it may not count as a break, and then no instance is awaited for longer than the grace
	}
	for range 3 {
		m.returns = append(m.returns, upTo(back))
	}
	return m
}

// However long Kafka is unavailable, and in whatever order instances come back, no key cools
// whose counts are in flight. An instance that died during the outage delays nothing for longer
// than liveFor.
func TestABreakIsNobodysAbsence(t *testing.T) {
	for seed := range uint64(testenv.Cases(24, 8)) {
		mix := newOutageMix(rand.New(rand.NewPCG(seed, 1)))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Log(mix)
			inWorld(t, 1, 2, func(w *world) { w.suffers(mix) })
		})
	}
}

func (w *world) suffers(mix outageMix) {
	w.Helper()
	l := newLink(w)
	rule := quick() // each instance's counts are needed to stay hot
	rule.Hot[0].Exit, rule.Hot[0].CoolDown = rules.Percent(95), 0
	change := func(c *Config) { c.Session, c.Rules.Rules = mix.session, []rules.Rule{rule} }
	w.dial = l.DialContext
	var all []*member
	for range mix.members {
		all = append(all, w.join(change))
	}
	ready := func() bool {
		n := 0
		for _, m := range all {
			for _, p := range m.Stats().Partitions {
				if p.Covered && p.Adopted {
					n++
				}
			}
		}
		return n == 2
	}
	w.until("all partitions read", ready)
	var mu sync.Mutex
	away := make([]bool, len(mix.returns))
	isAway := func(i int) bool { mu.Lock(); defer mu.Unlock(); return away[i] }
	set := func(i int, to bool) { mu.Lock(); defer mu.Unlock(); away[i] = to }
	for i := range mix.returns {
		lines := []string{line("q=all", 4)}
		if i == mix.dies {
			lines = []string{line("q=dead", 20)}
		} else if mix.dies >= 0 {
			lines = []string{line("q=all", 6)}
		}
		w.instance(fmt.Sprint("i", i), 2).writes(func() bool { return !isAway(i) }, lines)
	}
	w.until("the key hot", func() bool {
		return w.redis.hot("q=all") && (mix.dies < 0 || w.redis.hot("q=dead"))
	})
	time.Sleep(12 * time.Second)
	w.dontCool("q=all")

	if !mix.readable {
		if l.cut(); mix.refuses {
			l.refuse()
		}
	}
	for i := range away {
		set(i, true)
	}
	time.Sleep(mix.lasts / 2)
	if mix.restarts {
		all[0].stop()
		all[0] = w.join(change)
	}
	time.Sleep(mix.lasts - mix.lasts/2)
	w.dontCool("q=all")
	if !mix.readable {
		l.mend()
	}
	begin, first, last := time.Now(), time.Hour, time.Duration(0)
	for i, after := range mix.returns {
		if i != mix.dies {
			time.AfterFunc(after, func() { set(i, false) })
			first, last = min(first, after), max(last, after)
		}
	}
	w.until("all partitions read again", ready)
	if mix.dies >= 0 {
		const judged = 3 * time.Second // the window, and the counts in flight
		time.Sleep(time.Until(base.Later(time.Now(), begin.Add(first)).Add(liveFor + judged)))
		if w.redis.hot("q=dead") {
			w.Errorf("the key of an instance that died in the outage is hot %v after it\n%s", time.Since(begin), w.redis)
		}
	}
	time.Sleep(time.Until(begin.Add(last + 15*time.Second)))
	w.dontCool("q=all")
}

func (w *world) dontCool(text string) {
	w.Helper()
	if n := w.redis.cooled(text); n > 0 || !w.redis.hot(text) {
		w.Errorf("%s cooled %d times, and was hot all the time\n%s", text, n, w.redis)
	}
}

// writes counts lines of the first partition and sends them whenever may allows it, with
// heartbeats to the others. Lines that had to wait are sent late, and those older than 10 s are
// dropped.
func (i *instance) writes(may func() bool, lines []string) {
	const pause, kept = 100 * time.Millisecond, 100
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n, waiting := 0, 0; ctx.Err() == nil; n++ {
			if waiting++; may() {
				i.mu.Lock()
				i.seqs[0] += uint64(max(0, waiting-kept))
				i.mu.Unlock()
				for waiting = min(waiting, kept); waiting > 0; waiting-- {
					i.send(i.record(0, time.Duration(waiting)*pause, lines...))
				}
				for p := int32(1); p < int32(i.parts) && n%10 == 0; p++ {
					i.send(i.record(p, pause))
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}()
	i.stops = append(i.stops, func() { cancel(); <-done })
}

// The new owner of a partition reads the counts that its predecessor has already judged. Keys
// that have cooled since do not become hot again, and hot keys do not cool.
func TestTakeOverTellsNothingOld(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 2))
		cold := 3*time.Second + time.Duration(r.Int64N(int64(14*time.Second))) // time since the key cooled
		gap := time.Duration(r.Int64N(int64(4 * time.Second)))                 // time without an owner
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("cold for %v, nobody there for %v", cold, gap)
			inWorld(t, 1, 1, func(w *world) {
				first := w.join()
				w.has(first, 1)
				w.instance("b", 1).runs(map[int32][]string{0: {"q=steady"}})
				stop := w.instance("a", 1).runs(map[int32][]string{0: {"q=past"}})
				w.until("both hot", func() bool { return w.redis.hot("q=steady") && w.redis.hot("q=past") })
				time.Sleep(3 * time.Second)
				stop()
				w.instance("a", 1).runs(nil)
				w.until("one cool", func() bool { return !w.redis.hot("q=past") })
				time.Sleep(cold)
				first.stop()
				w.instance("c", 1).runs(map[int32][]string{0: {"q=new"}})
				time.Sleep(gap)
				begin := time.Now()
				second := w.join()
				w.until("the new one hot", func() bool { return w.redis.hot("q=new") })
				if took := time.Since(begin); took > 3*time.Second {
					w.Errorf("the new key is hot after %v", took)
				}
				time.Sleep(10 * time.Second)
				w.has(second, 1)
				w.redis.mu.Lock()
				defer w.redis.mu.Unlock()
				if n := len(w.redis.changes); n != 4 {
					w.Errorf("want each key hot once, and q=past cool\n%s", w.redis.changes)
				}
			})
		})
	}
}

// A log that is read from its first record on has no unknown instances, however late it is read.
func TestNobodyWroteBeforeTheFirstRecord(t *testing.T) {
	for _, late := range []time.Duration{0, time.Second, 5 * time.Second} {
		inWorld(t, 1, 1, func(w *world) {
			w.instance("b", 1).runs(nil)
			stop := w.instance("a", 1).runs(everywhere(1))
			time.Sleep(late)
			w.join()
			w.allHot(1)
			stop()
			w.instance("a", 1).runs(nil)
			begin := time.Now()
			w.until("the key cool", func() bool { return !w.redis.hot("q=0") })
			if took := time.Since(begin); took > 5*time.Second {
				w.Errorf("read %v after the first record: cool after %v", late, took)
			}
		})
	}
}

// The client asks at once for the first record that counts and for the end, where it starts if
// there is no such record. Records written between the two answers are not read. They are lost,
// but it is still known that the log was empty before them.
func TestWrittenWhileTheStartIsLookedFor(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		begin := time.Now()
		w.cluster.ControlKey(int16(kmsg.ListOffsets), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			asked := r.(*kmsg.ListOffsetsRequest).Topics[0]
			if asked.Partitions[0].CurrentLeaderEpoch < 0 || time.Since(begin) > 100*time.Millisecond {
				return nil, nil, false // it is ours, or of later
			}
			answer := r.ResponseKind().(*kmsg.ListOffsetsResponse)
			topic, p := kmsg.NewListOffsetsResponseTopic(), kmsg.NewListOffsetsResponseTopicPartition()
			topic.Topic, p.LeaderEpoch = asked.Topic, 0
			if p.Offset = -1; asked.Partitions[0].Timestamp == toEnd {
				p.Offset = 1
			}
			topic.Partitions = append(topic.Partitions, p)
			answer.Topics = append(answer.Topics, topic)
			return answer, nil, true
		})
		w.instance("b", 1).runs(nil)
		stop := w.instance("a", 1).runs(everywhere(1))
		w.join()
		w.allHot(1)
		stop()
		w.instance("a", 1).runs(nil)
		end := time.Now()
		w.until("the key cool", func() bool { return !w.redis.hot("q=0") })
		if took := time.Since(end); took > 5*time.Second {
			w.Errorf("cool after %v", took)
		}
	})
}
