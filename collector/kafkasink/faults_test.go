package kafkasink_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// Whatever brokers answer, and whenever they hang up, every given count is delivered or reported as
// failed.
func TestNothingIsLostUntold(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	errs := []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut,
		kerr.MessageTooLarge, kerr.TopicAuthorizationFailed, kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch,
		kerr.UnknownServerError, kerr.KafkaStorageError,
	}
	schedules := 0
	rapid.Check(t, func(r *rapid.T) {
		if schedules++; schedules > 8 { // each takes about a second, for back-offs
			return
		}
		change := rapid.SampledFrom([]func(*kafkasink.Config){func(*kafkasink.Config) {}, acksAll, idempotent}).Draw(r, "acks")
		c := fake(t, kfake.NumBrokers(2))
		defer c.Close()
		g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), change))}
		g.connect()
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				c.Fault(kfake.Fault{
					Keys: []kmsg.Key{kmsg.Produce}, Err: rapid.SampledFrom(errs).Draw(r, "error"), Count: rapid.IntRange(1, 4).Draw(r, "times"),
					Partitions: rapid.SliceOfNDistinct(rapid.Int32Range(0, 2), 1, 3, rapid.ID).Draw(r, "partitions"),
				})
			case 1:
				c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
					return nil, context.Canceled, true // hangs up
				})
			case 2:
				c.ShufflePartitionLeaders()
			}
			g.send(collector.Flush{}, terms(rapid.IntRange(0, 200).Draw(r, "counts"))...)
			time.Sleep(time.Duration(rapid.IntRange(0, 10).Draw(r, "ms")) * time.Millisecond)
		}
		g.drained()
		s := g.conserved()
		got := newReader(t, c.ListenAddrs()).until(func(got []received) bool { return seen(got) >= s.Delivered })
		// A record whose answer was an error may still have been appended.
		if sum := seen(got); sum > g.given {
			t.Errorf("%d counts of %d were seen", sum, g.given)
		}
		if g.tooLong != 0 || s.Failed.Delivery != s.Failed.Sum() {
			t.Errorf("failed %+v", s.Failed)
		}
	})
}

// An idempotent producer is replaced if brokers disagree with it for long.
func TestIdempotentOutOfStep(t *testing.T) {
	t.Parallel()
	c := fake(t)
	ids := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, TopLevel: true, Observe: true, Count: -1})
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), idempotent))}
	g.connect()
	g.drained()
	for _, err := range []*kerr.Error{kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.UnknownProducerID} {
		before := ids.Hits()
		disagree := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: err, Count: -1})
		for end := time.Now().Add(patience); ids.Hits() == before; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%v: the producer was not replaced", err)
			}
			g.send(collector.Flush{}, terms(20)...)
		}
		disagree.Remove()
		g.drained()
	}
	if s := g.conserved(); s.Failed.Sum() != 0 {
		t.Errorf("%+v", s)
	}
	// All records arrived. The retried ones follow the ones that succeeded at first.
	newReader(t, c.ListenAddrs()).until(func(got []received) bool { return seen(got) == g.given })
}

func TestRefused(t *testing.T) {
	c := fake(t)
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs()))}
	g.connect()
	g.drained()
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.TopicAuthorizationFailed,
		Partitions: []int32{wire.Partition([]byte("GET%20/search?q=a"), 3)}})
	g.send(collector.Flush{}, count("terms", "GET /search?q=a", 7))
	g.drained()
	sent := g.send(collector.Flush{})
	// A fast broker answers before the Send of the count returns, so that Send reports the failure.
	if g.failed != 7 || sent.Err == nil || !strings.Contains(sent.Err.Error(), "authorized") {
		t.Errorf("%d counts told as failed, last %+v", g.failed, sent)
	}
	if sent = g.send(collector.Flush{}); sent.Failed != 0 || sent.Err == nil {
		t.Errorf("the trouble is over too soon: %+v", sent)
	}
	if s := g.conserved(); s.Failed.Delivery != 7 {
		t.Errorf("%+v", s)
	}
}

func TestPartitionsAreAdded(t *testing.T) {
	c := fake(t)
	s := newSink(t, config(c.ListenAddrs()))
	s.RefreshEvery(10 * time.Millisecond)
	g := &giver{t: t, sink: s}
	g.connect()
	g.send(collector.Flush{}, terms(50)...)
	g.drained()
	if _, err := kadm.NewClient(newReader(t, c.ListenAddrs()).client).UpdatePartitions(t.Context(), 5, topic); err != nil {
		t.Fatal(err)
	}
	g.await("new partitions", func(s kafkasink.Stats) bool { return s.Partitions == 5 })
	g.send(collector.Flush{}, terms(50)...)
	g.drained()
	got := newReader(t, c.ListenAddrs()).until(func(got []received) bool { return seen(got) == 100 })
	inOrder(t, got)
	if r := got[len(got)-1]; r.Partitions != 5 {
		t.Errorf("%+v", r)
	}
	g.conserved()
}

// The topic is created after the sink.
func TestTopicComesLate(t *testing.T) {
	t.Parallel()
	c := fake(t)
	var log testenv.LogBuffer
	g := &giver{t: t, sink: newSink(t, config(c.ListenAddrs(), func(c *kafkasink.Config) {
		c.Topic = "late"
		c.Log = slog.New(slog.NewTextHandler(&log, nil))
	}))}
	g.send(collector.Flush{}, terms(1)...)
	time.Sleep(400 * time.Millisecond) // some attempts
	client := newReader(t, c.ListenAddrs()).client
	if _, err := kadm.NewClient(client).CreateTopic(t.Context(), 2, 1, nil, "late"); err != nil {
		t.Fatal(err)
	}
	g.await("topic", func(s kafkasink.Stats) bool { return s.Partitions == 2 })
	g.send(collector.Flush{}, terms(1)...)
	g.drained()
	if s := g.conserved(); s.Delivered != 1 || s.Failed.NotConnected != 1 {
		t.Errorf("%+v", s)
	}
	if text := log.String(); strings.Count(text, "cannot be reached") != 1 || strings.Count(text, "is reached") != 1 ||
		!strings.Contains(text, "the topic does not exist") {
		t.Errorf("log: %s", text)
	}
}
