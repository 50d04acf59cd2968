package kafkasink_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/testenv"
)

// short is the cluster timeout in tests of damaged answers.
const short = 500 * time.Millisecond

// TestSinksSendAgainAfterGarbledAnswers runs ten sinks while the answers of their brokers are
// damaged. Each sends again soon after the damage has ended.
func TestSinksSendAgainAfterGarbledAnswers(t *testing.T) {
	t.Parallel()
	seeds := 4
	if testing.Short() {
		seeds = 1
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			garbled(t, seed, func(g *testenv.Garbler) { g.Start(30) })
		})
	}
}

// TestSinksSendAgainAfterThrottling uses brokers that ask for throttle times of days.
func TestSinksSendAgainAfterThrottling(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	garbled(t, 1, func(g *testenv.Garbler) { g.StartThrottling(30) })
}

func garbled(t *testing.T, seed uint64, start func(*testenv.Garbler)) {
	garbler := testenv.NewGarbler(seed)
	c := fake(t, kfake.NumBrokers(2), kfake.ListenFn(garbler.Listen))
	var sinks []*giver
	for i := range 10 {
		g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) {
			c.Connection.Timeout = short
			c.Instance = fmt.Sprint("web-", i)
			if i%5 == 0 {
				idempotent(c)
			}
		}))}
		g.connect()
		sinks = append(sinks, g)
	}
	send := func() {
		for _, g := range sinks {
			g.send(collector.Flush{}, terms(20)...)
		}
		time.Sleep(20 * time.Millisecond)
	}
	start(garbler)
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		send()
	}
	garbler.Stop()
	if garbler.Damaged() == 0 {
		t.Fatal("no answer was damaged")
	}
	// This checks each partition of each sink, not only some of them.
	healed := time.Now()
	waiting := make(map[int]int64)
	for i, g := range sinks {
		waiting[i] = g.sink.Stats().Delivered
	}
	for end := healed.Add(bound); len(waiting) > 0; send() {
		for i, delivered := range waiting {
			if s := sinks[i].sink.Stats(); s.Delivered > delivered {
				delete(waiting, i)
			}
		}
		if time.Now().After(end) {
			for i := range waiting {
				t.Errorf("sink %d does not send %v after the answers are good again: %+v", i, bound, sinks[i].sink.Stats())
			}
			break
		}
	}
	t.Logf("%d answers damaged; all sent again after %v", garbler.Damaged(), time.Since(healed))
	for _, g := range sinks {
		g.conserved()
	}
}

// bound is the time within which a sink sends again: 15 s until a session without progress is
// replaced, and some to spare for a busy machine.
const bound = 30 * time.Second

// TestThrottledSessionIsReplaced uses brokers that ask for a pause of days. The session does not
// wait for its end, nor for the time after which it counts as stalled.
func TestThrottledSessionIsReplaced(t *testing.T) {
	t.Parallel()
	garbler := testenv.NewGarbler(1)
	c := fake(t, kfake.ListenFn(garbler.Listen))
	s := newSink(t, config(c.ListenAddrs()))
	s.StallAfter(time.Hour)
	g := &giver{t: t, sink: s}
	g.connect()
	g.send(collector.Flush{}, terms(20)...)
	g.drained() // the answer to the first request of a connection has no throttle time
	garbler.StartThrottling(100)
	g.send(collector.Flush{}, terms(20)...)
	g.await("another session", func(s kafkasink.Stats) bool { return s.Replaced.Stalled > 0 })
	garbler.Stop()
	g.send(collector.Flush{}, terms(20)...)
	g.drained()
	if s := g.conserved(); s.Failed.Sum() != 0 {
		t.Errorf("%+v", s)
	}
}

// TestStuckSessionIsReplaced uses a session whose client obeys a long throttle time. Another
// session takes its place and its records, without waiting for the end of that time.
func TestStuckSessionIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	garbler := testenv.NewGarbler(1)
	c := fake(t, kfake.ListenFn(garbler.Listen))
	s := newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) { c.Connection.Timeout = short }))
	s.StallAfter(time.Second)
	s.ObeyThrottling(math.MaxInt64)
	g := &giver{t: t, sink: s}
	g.connect()
	g.send(collector.Flush{}, terms(20)...)
	g.drained()
	garbler.StartThrottling(100)
	g.send(collector.Flush{}, terms(1)...) // one record, so that none waits for the pause
	g.drained()
	garbler.Stop()
	g.send(collector.Flush{}, terms(20)...)
	g.drained()
	if s := g.sink.Stats(); s.Replaced.Stalled != 1 || s.Abandoned != 0 || s.Failed.Sum() != 0 {
		t.Errorf("%+v", s)
	}
	began := time.Now()
	g.conserved()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("Close took %v", took)
	}
	newReader(t, c.ListenAddrs()).until(func(got []received) bool { return seen(got) == g.given })
	g.await("end of the stuck session", func(kafkasink.Stats) bool { return s.Sessions() == 0 })
}

// TestUselessSessionIsReplaced makes each produce request fail with an error to retry. The session
// is replaced, and the next one delivers the records.
func TestUselessSessionIsReplaced(t *testing.T) {
	t.Parallel()
	c := fake(t)
	s := newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) { c.Connection.Timeout = short }))
	s.StallAfter(time.Second)
	g := &giver{t: t, sink: s}
	g.connect()
	fault := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.UnknownTopicID, Count: -1})
	g.send(collector.Flush{}, terms(20)...)
	g.await("another session", func(s kafkasink.Stats) bool { return s.Replaced.Stalled > 0 })
	fault.Remove()
	g.drained()
	if s := g.conserved(); s.Failed.Sum() != 0 {
		t.Errorf("%+v", s)
	}
}
