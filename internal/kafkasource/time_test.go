package kafkasource

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// While a partition cannot be read, nothing cools in it, and others continue. Counts sent in the
// outage are counted when they can be read.
func TestFrozenPartitionDoesNotCool(t *testing.T) {
	for _, goesOn := range []bool{true, false} {
		t.Run(fmt.Sprint("traffic goes on=", goesOn), func(t *testing.T) {
			inWorld(t, 2, 2, func(w *world) {
				link := newLink(w)
				link.addr = w.lead(1)
				m := w.joinBy(link)
				w.has(m, 2)
				stop := w.instance("a", 2).runs(everywhere(2))
				w.allHot(2)
				link.cut()
				time.Sleep(2 * time.Second)
				if !goesOn {
					stop()
				}
				time.Sleep(20 * time.Second)
				s := m.Stats()
				if !s.Partitions[1].Frozen || !s.Partitions[1].Unread || s.Partitions[1].Behind < 20*time.Second {
					w.Errorf("%+v, want it frozen", s.Partitions[1])
				}
				if s.Partitions[0].Frozen || s.Partitions[0].Unread || goesOn == (w.redis.cooled("q=0") > 0) {
					w.Errorf("%+v, want it to go on\n%s", s.Partitions[0], w.redis)
				}
				if m.log.count("stalled") != 1 {
					w.Error("want the outage told once")
				}
				link.mend()
				time.Sleep(12 * time.Second)
				if cooled := w.redis.cooled("q=1"); (cooled > 0) == goesOn || w.redis.cooled("q=0") > 1 {
					w.Errorf("cooled %d times", cooled)
				}
				if s := m.Stats(); s.Partitions[1].Frozen || s.Partitions[1].Unread || s.Partitions[1].Records > 5 || s.Decoder.LostPackets != 0 || m.log.count("answer again") != 1 {
					w.Errorf("%+v, want all read and going on", s)
				}
			})
		})
	}
}

// lead moves partitions so that the group's coordinator leads all except one, and returns the
// address of that one's leader.
func (w *world) lead(other int32) string {
	w.T.Helper()
	coordinator := w.cluster.CoordinatorFor("hotparam-shop")
	node := 1 - coordinator
	for p := range int32(2) {
		leader := coordinator
		if p == other {
			leader = node
		}
		if err := w.cluster.MoveTopicPartition(wire.DefaultTopic, p, leader); err != nil {
			w.Fatal(err)
		}
	}
	return w.cluster.ListenAddrs()[node]
}

// While a partition cannot be written, nothing cools in it, though its instances are received in
// others.
func TestPartitionThatCannotBeWrittenDoesNotCool(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		m := w.join()
		w.has(m, 2)
		a := w.instance("a", 2)
		stop := a.runs(everywhere(2))
		w.allHot(2)
		stop()
		stop = w.instance("a", 1).runs(map[int32][]string{0: {"q=0"}}) // to the first alone
		time.Sleep(30 * time.Second)
		w.unchanged(2)
		if s := m.Stats(); !s.Partitions[1].Frozen || s.Partitions[1].Unread {
			w.Errorf("%+v, want it frozen, though it is read", s.Partitions[1])
		}
		stop() // no instance is left
		w.until("all cool", func() bool { return !w.redis.hot("q=0") && !w.redis.hot("q=1") })
	})
}

// An instance that dies delays the time by the grace. The partition is read all the time.
func TestPartitionIsReadWhenAnInstanceDies(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		m := w.join()
		w.has(m, 1)
		defer w.instance("a", 1).runs(everywhere(1))()
		die := w.instance("b", 1).runs(everywhere(1))
		w.allHot(1)
		die()
		w.until("it stands still", func() bool { return m.Stats().Partitions[0].Frozen })
		for range 100 {
			if p := m.Stats().Partitions[0]; p.Unread {
				w.Fatalf("%+v, want it read", p)
			}
			time.Sleep(100 * time.Millisecond)
		}
		w.unchanged(1)
		w.until("its time goes on", func() bool { return !m.Stats().Partitions[0].Frozen })
	})
}

// Records from before a source's start are counted as far back as they can matter.
func TestSourceSeeksByTime(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		window := func(c *Config) {
			c.Rules = &rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 300, time.Minute)}}
		}
		a := w.instance("a", 1)
		for i := range 200 { // 200 s; only the last 65 can matter to a window
			a.send(a.record(0, 0, line("q=1", 5), line(fmt.Sprint("q=old", i), 1)))
			time.Sleep(time.Second)
		}
		m := w.join(window)
		w.has(m, 1)
		if s := m.Stats(); s.Records < 70 || s.Records > 85 {
			w.Errorf("%d records read, want those of 65 s, and of an outage before", s.Records)
		}
		if !w.redis.hot("q=1") {
			w.Errorf("want a key hot that had 300 in the last minute\n%s", w.redis)
		}
		// A high count is known after the backlog is read.
		w.redis.mu.Lock()
		defer w.redis.mu.Unlock()
		if p := w.redis.holders[0]; len(p.refreshed) > 0 && p.refreshed[0].High == published.Unknown {
			w.Errorf("%+v, want its high count known", p.refreshed)
		}
	})
}

// Programs that send only lines are counted, by the time of the broker, and keys cool by the time
// of the partition's end.
func TestLinesWithoutHeaders(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		m := w.join()
		w.has(m, 1)
		for range 10 {
			w.send(&kgo.Record{Topic: wire.DefaultTopic, Key: []byte("q=1"), Value: []byte(line("q=1", 20) + "\nother.line:1|c\n")})
			time.Sleep(50 * time.Millisecond)
		}
		w.until("the key hot", func() bool { return w.redis.hot("q=1") })
		begin := time.Now()
		w.until("the key cool", func() bool { return !w.redis.hot("q=1") })
		if took := time.Since(begin); took > 15*time.Second {
			w.Errorf("cool after %v", took)
		}
		if s := m.Stats(); s.NoHeaders != 10 || s.Decoder.Sum != 200 || s.Decoder.Foreign != 10 {
			w.Errorf("%+v", s)
		}
	})
}

// The end of a transaction is a record that clients do not see.
func TestTransactionsAreRead(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		m := w.join()
		w.has(m, 1)
		client, err := kgo.NewClient(kgo.SeedBrokers(w.cluster.ListenAddrs()...), kgo.Dialer(w.network.DialContext), kgo.TransactionalID("t"))
		if err != nil {
			w.Fatal(err)
		}
		defer client.Close()
		ctx := context.Background()
		if err := client.BeginTransaction(); err != nil {
			w.Fatal(err)
		}
		if err := client.ProduceSync(ctx, &kgo.Record{Topic: wire.DefaultTopic, Value: []byte(line("q=1", 200))}).FirstErr(); err != nil {
			w.Fatal(err)
		}
		if err := client.EndTransaction(ctx, kgo.TryCommit); err != nil {
			w.Fatal(err)
		}
		time.Sleep(12 * time.Second)
		if p := m.Stats().Partitions[0]; p.Position != 2 || p.End != 2 || p.Frozen {
			w.Errorf("%+v, want all read", p)
		}
	})
}

// If the log begins later than the position that a source seeks, the counts before it are unknown
// for as long as they would matter.
func TestDeletedBeginningIsUnknown(t *testing.T) {
	inWorld(t, 1, 1, func(w *world) {
		a := w.instance("a", 1)
		for range 60 {
			a.send(a.record(0, 0, line("q=1", 50)))
			time.Sleep(time.Second)
		}
		if err := w.client.Flush(context.Background()); err != nil {
			w.Fatal(err)
		}
		upTo := make(kadm.Offsets)
		upTo.AddOffset(wire.DefaultTopic, 0, 50, -1)
		if _, err := w.admin.DeleteRecords(context.Background(), upTo); err != nil {
			w.Fatal(err)
		}
		m := w.join(func(c *Config) {
			c.Rules = &rules.Rules{Namespace: "shop", Rules: []rules.Rule{hotRule("r", 300, time.Minute)}}
		})
		w.has(m, 1)
		a.runs(nil)
		unknown := func() bool {
			w.redis.mu.Lock()
			defer w.redis.mu.Unlock()
			p := w.redis.holders[0]
			return len(p.refreshed) == 1 && p.refreshed[0].High == published.Unknown
		}
		time.Sleep(30 * time.Second)
		if s := m.Stats(); s.Records > 10+60 || !unknown() {
			w.Errorf("%+v, want ten records and the high count unknown", s)
		}
	})
}
