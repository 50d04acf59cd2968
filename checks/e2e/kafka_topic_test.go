package e2e

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/wire"
)

// delivered holds the counts that the brokers have.
type delivered struct {
	counts  map[string]int64 // by member
	sum     int64
	records int
	gaps    [partitions]int64 // records that senders numbered and that are not there
	silence silence           // the longest

}

// silence is a time in which the brokers took no record of one instance in a
// partition.
type silence struct {
	partition int32
	from, to  time.Time
}

// readTopic reads all that the topic holds.
func (f *kafkaFleet) readTopic() delivered {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	client := f.kafka.Client(kgo.ConsumeTopics(f.topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, f.topic)
	if err != nil {
		f.t.Fatal(err)
	}
	left := make(map[int32]int64)
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	type sender struct {
		instance    string
		incarnation uint64
		partition   int32
	}
	d := delivered{counts: make(map[string]int64)}
	seen := make(map[sender]map[uint64]bool)
	newest := make(map[sender]uint64)
	taken := make(map[sender]time.Time)
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			f.t.Fatalf("read %s: %v; %d partitions left", f.topic, err, len(left))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset >= left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			var headers []wire.Header
			for _, h := range r.Headers {
				headers = append(headers, wire.Header{Key: h.Key, Value: h.Value})
			}
			head, ours, err := wire.ParseRecordHead(headers)
			if err != nil || !ours {
				f.t.Errorf("record %d of partition %d: headers of ours: %v, %v", r.Offset, r.Partition, ours, err)
				return
			}
			from := sender{string(head.Instance), head.Incarnation, r.Partition}
			if last := taken[from]; !last.IsZero() && r.Timestamp.Sub(last) > d.silence.to.Sub(d.silence.from) {
				d.silence = silence{r.Partition, last, r.Timestamp}
			}
			taken[from] = r.Timestamp
			if seen[from] == nil {
				seen[from] = make(map[uint64]bool)
			}
			if seen[from][head.Seq] {
				return
			}
			seen[from][head.Seq] = true
			newest[from] = max(newest[from], head.Seq)
			d.records++
			d.addRecord(f.t, r)
		})
	}
	for from, n := range newest {
		d.gaps[from.partition] += int64(n) - int64(len(seen[from]))
	}
	return d
}

func (d *delivered) addRecord(t *testing.T, r *kgo.Record) {
	for line := range bytes.SplitSeq(r.Value, []byte("\n")) {
		if len(line) == 0 || wire.IsOrigin(line) {
			continue
		}
		l, err := wire.ParseLine(line)
		if err != nil {
			t.Errorf("record %d of partition %d: line %q: %v", r.Offset, r.Partition, line, err)
			continue
		}
		text, err := wire.Plain.AppendDecoded(nil, l.Key)
		if want := wire.Partition(l.Key, partitions); err != nil || r.Partition != want {
			t.Errorf("line %q is in partition %d, want %d (%v)", line, r.Partition, want, err)
		}
		_, rule, _ := strings.Cut(string(l.Prefix), ".")
		d.counts[rule+" "+string(text)] += l.N
		d.sum += l.N
	}
}
