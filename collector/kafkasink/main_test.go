package kafkasink_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const topic = "counters"

// testRules returns a rule whose keys are spread over the partitions, and one whose keys must be
// counted in one place.
func testRules() *rules.Rules {
	return &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "terms", Hot: []rules.Threshold{{Rate: rules.Rate{N: 10, Per: time.Second}}}},
		{ID: "share", Hot: []rules.Threshold{{Kind: rules.Share, Rate: rules.Rate{Per: time.Second}}}},
	}}
}

// fake starts a Kafka in the process.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, topic)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// config returns a sink's configuration for these addresses, edited by changes.
func config(addrs []string, changes ...func(*kafkasink.Config)) kafkasink.Config {
	c := kafkasink.Config{
		Rules:      testRules(),
		Connection: kafka.Connection{Brokers: addrs},
		Topic:      topic,
		Instance:   "web-1",
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func newSink(t testing.TB, c kafkasink.Config) *kafkasink.Sink {
	t.Helper()
	s, err := kafkasink.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// giver sends flushes to a sink and sums the sink's reports about them.
type giver struct {
	t    testing.TB
	sink *kafkasink.Sink

	given, failed, tooLong int64
	err                    error
}

func (g *giver) send(f collector.Flush, counts ...collector.Count) collector.Sent {
	g.t.Helper()
	if f.Start.IsZero() {
		f.Start = time.Now().Truncate(base.FlushInterval)
	}
	f.Held = max(1, f.Held)
	for i := range counts {
		g.given += counts[i].N
	}
	began := time.Now()
	sent := g.sink.Send(g.t.Context(), f, counts)
	if took := time.Since(began); took > 3*time.Second {
		g.t.Errorf("Send waited %v", took)
	}
	g.failed += sent.Failed
	g.tooLong += sent.TooLong
	g.err = sent.Err
	return sent
}

// connect sends until the sink knows the partitions.
func (g *giver) connect() {
	g.t.Helper()
	g.send(collector.Flush{})
	g.await("connection", func(s kafkasink.Stats) bool { return s.Connected && s.Partitions > 0 })
}

// patience is how long a test waits on a busy machine.
const patience = 20 * time.Second

func (g *giver) await(what string, ok func(kafkasink.Stats) bool) {
	g.t.Helper()
	testenv.Eventually(g.t, what, func() bool { return ok(g.sink.Stats()) }, func() any { return []any{g.sink.Stats(), g.err} })
}

// drained waits until no record is waiting.
func (g *giver) drained() {
	g.t.Helper()
	g.await("end of the queue", func(s kafkasink.Stats) bool { return s.Waiting == 0 })
}

// conserved closes the sink. It checks that every given count was delivered or reported as failed,
// and that no memory is held.
func (g *giver) conserved() kafkasink.Stats {
	g.t.Helper()
	_ = g.sink.Close()
	s := g.sink.Stats()
	if s.Delivered+s.Failed.Sum() != g.given {
		g.t.Errorf("given %d, delivered %d, failed %+v", g.given, s.Delivered, s.Failed)
	}
	if s.Buffered != 0 || s.Waiting != 0 {
		g.t.Errorf("%d bytes of %d records are left", s.Buffered, s.Waiting)
	}
	return s
}

func count(rule, text string, n int64) collector.Count {
	return collector.Count{Rule: []byte(rule), Text: []byte(text), N: n}
}

func terms(n int) (counts []collector.Count) {
	for i := range n {
		counts = append(counts, count("terms", fmt.Sprintf("GET /search?q=%d", i), 1))
	}
	return counts
}

// received is a record as read from the topic.
type received struct {
	wire.RecordHead
	ours      bool
	partition int32
	offset    int64
	value     string
	all       []wire.Header
}

// reader reads the topic from its beginning.
type reader struct {
	t      testing.TB
	client *kgo.Client
	got    []received
}

func newReader(t testing.TB, addrs []string) *reader {
	t.Helper()
	client, err := kgo.NewClient(append(fromTheStart, kgo.SeedBrokers(addrs...))...)
	if err != nil {
		t.Fatal(err)
	}
	return readerOf(t, client)
}

func readerOf(t testing.TB, client *kgo.Client) *reader {
	t.Cleanup(client.Close)
	client.AddConsumeTopics(topic)
	return &reader{t: t, client: client}
}

var fromTheStart = []kgo.Opt{
	kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.MetadataMinAge(100 * time.Millisecond), kgo.FetchMaxWait(100 * time.Millisecond),
}

// until reads until it has enough.
func (r *reader) until(enough func([]received) bool) []received {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 20*time.Second)
	defer cancel()
	for !enough(r.got) {
		fetches := r.client.PollFetches(ctx)
		if ctx.Err() != nil {
			r.t.Fatalf("not enough records after 20 s: %+v", r.got)
		}
		fetches.EachRecord(func(x *kgo.Record) {
			headers := make([]wire.Header, len(x.Headers))
			for i, h := range x.Headers {
				headers[i] = wire.Header(h)
			}
			head, ours, err := wire.ParseRecordHead(headers)
			if err != nil {
				r.t.Errorf("record %+v: %v", x, err)
			}
			r.got = append(r.got, received{head, ours, x.Partition, x.Offset, string(x.Value), headers})
		})
	}
	return r.got
}

// atLeast reads n records.
func (r *reader) atLeast(n int) []received {
	r.t.Helper()
	return r.until(func(got []received) bool { return len(got) >= n })
}
