package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/kafkafake"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/rules"
)

// Every event is counted, probes arrive, keys are hot in Redis, and the caller's Redis is left
// empty.
func TestPipeline(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	broker, err := kafkafake.Start(1)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	for name, c := range map[string]PipelineConfig{
		"statsd":                 {Transport: TransportStatsD},
		"kafka":                  {Transport: TransportKafka},
		"a Kafka that was there": {Transport: TransportKafka, Brokers: []string{broker.Addr()}},
	} {
		t.Run(name, func(t *testing.T) {
			server := testenv.Redis(t)
			steps := 0
			c.Command, c.Rate, c.For, c.Instances = partsOfTest(), 4000, 2*time.Second, 2
			c.Redis, c.Progress = server.URL(), func(int, int) { steps++ }
			r, err := Pipeline(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if want := int64(c.Rate) * 2; r.Events != want+r.probed {
				t.Errorf("%d events, want %d and %d probes", r.Events, want, r.probed)
			}
			if r.Lost != 0 || r.Probes == 0 || int64(r.Probes) > r.probed || r.LagMS <= 0 {
				t.Errorf("%+v", r)
			}
			if math.Abs(r.CPUSeconds-r.Instances-r.Aggregator) > 0.002 || r.Instances <= 0 || r.Aggregator <= 0 {
				t.Errorf("processor time: %+v", r)
			}
			if r.Hot == 0 || steps < 2 {
				t.Errorf("%d keys are hot, told of %d steps", r.Hot, steps)
			}
			client, err := hotkeys.NewClient(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if keys, err := client.Keys(t.Context(), "*").Result(); err != nil || len(keys) > 0 {
				t.Errorf("it leaves in Redis %q, %v", keys, err)
			}
		})
	}
	mustHaveNoTopic(t, broker)
}

func mustHaveNoTopic(t *testing.T, broker *kafkafake.Broker) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	topics, err := admin.ListTopics(t.Context())
	if err != nil || len(topics.Names()) > 0 {
		t.Errorf("it leaves the topics %q, %v", topics.Names(), err)
	}
	groups, err := admin.ListGroups(t.Context())
	if err != nil || len(groups.Groups()) > 0 {
		t.Errorf("it leaves the groups %q, %v", groups.Groups(), err)
	}
}

func TestPipelineFields(t *testing.T) {
	r := PipelineResult{Events: 1, Seconds: 2, EventsPerSecond: 0.5, CPUSeconds: 3, LagMS: 4, Lost: 5, Probes: 6, Instances: 7, Aggregator: 8, Hot: 9}
	const want = `{"events":1,"seconds":2,"events_per_second":0.5,"cpu_seconds":3,"lag_ms":4,"lost":5}`
	if got, err := json.Marshal(r); string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}

// When the context ends under load, so do the parts, and nothing else is logged.
func TestPipelineEndsWithItsContext(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes: left out with -short")
	}
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("no redis-server in PATH (Debian: apt-get install redis-server)")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	for _, transport := range []string{TransportStatsD, TransportKafka} {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		_, err := Pipeline(ctx, PipelineConfig{
			Command: partsOfTest(), Transport: transport, Rate: 1000, For: time.Hour, Instances: 2,
			Progress: func(int, int) { cancel() },
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", transport, err)
		}
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("%s: it took %v", transport, took)
		}
		mustBeEmpty(t, dir)
	}
}

func TestPipelineWithoutServers(t *testing.T) {
	url := testenv.Redis(t).URL()
	t.Setenv("PATH", t.TempDir())
	c := PipelineConfig{Command: partsOfTest(), Transport: TransportKafka}
	if _, err := Pipeline(t.Context(), c); !errors.Is(err, ErrNoRedis) {
		t.Errorf("no redis-server: error %v", err)
	}
	c.Redis, c.Brokers = url, []string{"127.0.0.1:1"}
	if _, err := Pipeline(t.Context(), c); !errors.Is(err, ErrNoKafka) {
		t.Errorf("nobody listens: error %v", err)
	}
}

// A load has as many events as requested, a new probe now and then, and for each seed its own
// stream by Zipf's law.
func TestLoad(t *testing.T) {
	counts := make(map[string]int64)
	add := func(hash uint64, member []byte, n uint64) {
		if hash != rules.Hash(member) {
			t.Fatalf("%s has another hash", member)
		}
		counts[string(member)] += int64(n)
	}
	from := monotonic()
	l := newLoad(1)
	const lasts = 1500 * time.Millisecond // few events, so that a busy machine has time for some probes, too
	o, err := l.run(t.Context(), loadOrder{From: from, Until: from + int64(lasts), Rate: 1e4}, add)
	if err != nil {
		t.Fatal(err)
	}
	if o.Events != 15_000+o.Probes || o.Ended < from+int64(lasts) {
		t.Errorf("%+v", o)
	}
	var sum, probes int64
	for member, n := range counts {
		sum += n
		if at, ok := probeTime(mustKey(t, member)); ok {
			probes++
			if n != 1 || at < from || at > o.Ended {
				t.Errorf("%s came %d times, from %d to %d", member, n, from, o.Ended)
			}
		}
	}
	if sum != o.Events || probes != o.Probes || probes == 0 {
		t.Errorf("%d events and %d probes were counted, %+v", sum, probes, o)
	}
	most := counts["terms GET /search?b=2&q=1"]
	if share := float64(most) / 15e3; share < 0.12 || share > 0.15 {
		t.Errorf("the most frequent key has %.3f of the events, want 0.135", share)
	}
	if other := newLoad(2); other.ranks[0] == l.ranks[0] && other.ranks[1] == l.ranks[1] && other.ranks[2] == l.ranks[2] && other.ranks[3] == l.ranks[3] {
		t.Error("two instances have the same stream")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.run(over, loadOrder{From: from, Until: from + int64(time.Hour), Rate: 1}, add); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A publisher receives all keys except probes.
func TestProbesAreNotPublished(t *testing.T) {
	var heard reported
	seen := new(probes)
	p := &probed{&heard, seen}
	key := func(rule, text string) published.Hot { return published.Hot{Key: rules.Key{Rule: rule, Text: text}} }
	old := newProbe(monotonic() - int64(time.Second))
	probe := published.Hot{Key: mustKey(t, string(old.member))}
	phone := key(ruleTerms, "GET /search?q=phone")
	p.Publish(published.Change{Hot: []published.Hot{probe}})
	p.Refresh(0, []published.Hot{probe})
	if heard.changes+heard.refreshed > 0 {
		t.Error("it hears of probes")
	}
	p.Publish(published.Change{Hot: []published.Hot{probe, phone}, Cool: []published.Hot{probe}})
	p.Refresh(0, []published.Hot{phone, probe})
	if heard.changes != 1 || heard.refreshed != 1 {
		t.Errorf("it hears of %d and %d other keys, want 1 and 1", heard.changes, heard.refreshed)
	}
	if lags := seen.sorted(); len(lags) != 2 || lags[0] < int64(time.Second) || lags[1] > int64(time.Minute) {
		t.Errorf("lags %v", lags)
	}
}

type reported struct {
	kafkasource.PartitionPublisher // nil: its other methods are not called
	changes, refreshed             int
}

func (p *reported) Publish(c published.Change)         { p.changes += len(c.Hot) + len(c.Cool) }
func (p *reported) Refresh(_ int, hot []published.Hot) { p.refreshed += len(hot) }

func mustKey(t *testing.T, text string) rules.Key {
	t.Helper()
	key, ok := rules.ParseKey(text)
	if !ok {
		t.Fatalf("%q is no key", text)
	}
	return key
}
