package kafkafake

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const topic = "counters"

func start(t *testing.T, partitions int) (*Broker, *kgo.Client) {
	t.Helper()
	b, err := Start(partitions, topic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeTopics(topic), kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return b, client
}

func produce(t *testing.T, client *kgo.Client, partition int32, value string) *kgo.Record {
	t.Helper()
	r, err := client.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Partition: partition, Value: []byte(value)}).First()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A record written to a partition is read from the same partition.
func TestRecordsComeThrough(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, client := start(t, 3)
	want := map[int32]string{0: "a", 1: "b", 2: "c"}
	for partition, value := range want {
		produce(t, client, partition, value)
	}
	for len(want) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if want[r.Partition] != string(r.Value) {
				t.Errorf("partition %d has %q", r.Partition, r.Value)
			}
			delete(want, r.Partition)
		})
	}
}

// However much is written, memory stays bounded, and offsets continue.
func TestMemoryIsBounded(t *testing.T) {
	_, client := start(t, 1)
	value := strings.Repeat("x", 64<<10)
	const whole = partitionBytes / (64 << 10) // records that a partition has room for
	written := int64(0)
	// write writes records, waits until the excess is deleted, and returns the memory in use.
	write := func(records int64) int64 {
		for range records {
			produce(t, client, 0, value)
		}
		written += records
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			offsets, err := kadm.NewClient(client).ListStartOffsets(t.Context(), topic)
			if err != nil {
				t.Fatal(err)
			}
			switch first, _ := offsets.Lookup(topic, 0); {
			case first.Offset > written-whole/2:
				t.Fatalf("of %d records those before %d are gone", written, first.Offset)
			case first.Offset >= written-whole:
				return heap()
			case time.Now().After(deadline):
				t.Fatalf("of %d records those from %d on are held", written, first.Offset)
			}
		}
	}
	full := write(2 * whole)
	if grown := write(8*whole) - full; grown > partitionBytes {
		t.Errorf("memory grew by %d bytes, when %d were written to a partition that holds %d", grown, 8*partitionBytes, partitionBytes)
	}
	if next := produce(t, client, 0, value); next.Offset != written {
		t.Errorf("offset %d, want %d", next.Offset, written)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
