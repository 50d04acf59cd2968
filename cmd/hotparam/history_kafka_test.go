package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
)

// With Kafka each partition has its own history. Partitions move to an aggregator that joins, to the
// one that is left: no count is twice in the history, and what is missing is of the seconds in which
// they moved.
func TestHistoryOverKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	t.Parallel()
	server := testenv.Redis(t)
	broker := fakeKafka(t, wire.DefaultTopic)
	file := write(t, goodRules+fmt.Sprintf("kafka: {session: 6s}\naggregator: {redis: %s, history: {}}\n", server.URL()))
	args := []string{"--config", file, "--source", "kafka", "--brokers", broker}
	one := startDaemon(t, args...)
	eventually(t, one.is("ready: 4 partitions"))
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker), kgo.DefaultProduceTopic(wire.DefaultTopic))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	const keys, each = 8, 30
	produced := 0 // of each key
	from := time.Now()
	produce := func(until func() error) {
		eventually(t, func() error {
			for i := range keys {
				key := fmt.Sprintf("GET%%20/search?q=%d", i)
				if err := producer.ProduceSync(t.Context(), &kgo.Record{Key: []byte(key), Value: fmt.Appendf(nil, "shop.search-terms.hot_param.%s:%d|c", key, each)}).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			produced++
			return until()
		})
	}
	after := func(d time.Duration) func() error {
		began := time.Now()
		return func() error {
			if past := time.Since(began); past < d {
				return fmt.Errorf("%v of %v", past, d)
			}
			return nil
		}
	}
	produce(after(3 * time.Second))
	two := startDaemon(t, args...)
	produce(two.is("ready: 2 partitions"))
	produce(after(3 * time.Second))
	if code := one.end(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	produce(two.is("ready: 4 partitions"))
	produce(after(3 * time.Second))
	last := time.Now()

	sums := make(map[string]int64)
	eventually(t, func() error {
		r := hotparamCommand(t, "history", "--config", file, "--json", "--from", from.Add(-time.Second).Format(time.RFC3339), "--to", "now")
		var v pastView
		if err := json.Unmarshal([]byte(r.out), &v); err != nil {
			return err
		}
		newest := int64(0)
		for _, row := range v.Rows {
			sums[row.Key] = 0
			for _, c := range row.Cells {
				sums[row.Key] += *c[1]
				newest = max(newest, v.From+*c[0]*v.Step)
			}
		}
		if newest < last.Unix()-1 || len(sums) != keys {
			return fmt.Errorf("%d keys up to %d, want %d up to %d", len(sums), newest, keys, last.Unix())
		}
		return nil
	})
	t.Logf("%d counts of each key in %v; the history has %v", produced*each, last.Sub(from), sums)
	perSecond := float64(produced*each) / last.Sub(from).Seconds()
	for key, n := range sums {
		if n > int64(produced*each) || float64(n) < float64(produced*each)-4*perSecond {
			t.Errorf("%s: %d counts of %d", key, n, produced*each)
		}
	}
}
