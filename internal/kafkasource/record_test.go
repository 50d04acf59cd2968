package kafkasource

import (
	"bytes"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// bench returns a worker of partition 0 of 1, without brokers. Its backlog is read.
func bench(t testing.TB, ruleset ...rules.Rule) *worker {
	t.Helper()
	if len(ruleset) == 0 {
		ruleset = append(ruleset, quick())
	}
	s := New(Config{
		Connection: kafka.Connection{Brokers: []string{"localhost:1"}},
		Rules:      &rules.Rules{Namespace: "shop", Rules: ruleset},
		Publisher:  func(int32) (PartitionPublisher, error) { return nil, nil },
	})
	r := &redis{entries: make(map[rules.Key]entry), holders: make(map[int32]*publisher), tellers: make(map[int32]bool)}
	p := &publisher{redis: r, runs: true}
	r.holders[0] = p
	w := s.newWorker(0, noon)
	w.open(1, p)
	w.adopt(inheritance{}, noon)
	w.handleEnds(ends{asked: noon, end: 0, start: 0})
	w.spoken = noon
	return w
}

func (w *worker) published() *publisher { return w.gate.to.(*publisher) }

// stamped returns a record that its broker received at a time.
func stamped(r *kgo.Record, offset int64, at time.Time) *kgo.Record {
	r.Offset, r.Timestamp = offset, at
	r.Attrs = kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: appendTime})
	return r
}

func head(seq uint64, start time.Time) *wire.RecordHead {
	return &wire.RecordHead{
		Meta:      wire.Meta{Instance: []byte("a"), Incarnation: 1, Seq: seq, Start: start.UnixNano(), Held: 1},
		Namespace: []byte("shop"), Partitions: 1,
	}
}

func TestRecord(t *testing.T) {
	const n = 150 // of 100 that make a key hot
	many := line("q=1", n)
	at := noon.Add(time.Second)
	for _, test := range []struct {
		name    string
		records []*kgo.Record // taken a second after noon, unless they say otherwise
		hot     bool
		check   func(Stats) bool
	}{
		{"with headers", []*kgo.Record{headed(head(1, at), 0, many)}, true,
			func(s Stats) bool { return s.Decoder.Sum == n }},
		{"a heartbeat", []*kgo.Record{headed(head(1, at), 0)}, false,
			func(s Stats) bool { return s.Records == 1 && s.Decoder.Packets == 1 && s.Decoder.Lines == 0 }},
		{"lines alone", []*kgo.Record{{Value: []byte(many)}}, true,
			func(s Stats) bool { return s.NoHeaders == 1 }},
		{"lines alone, one not canonical", []*kgo.Record{{Value: []byte(line("GET /s?q=1", 75))}, {Value: []byte(line("GET /s?q=%2531", 75))}}, false,
			func(s Stats) bool { return s.Decoder.Uncanonical == 1 && s.Detector.Hot == 1 && s.Detector.Keys == 1 }},
		{"headers, one not canonical", []*kgo.Record{headed(head(1, at), 0, line("GET /s?q=1", 75)), headed(head(2, at), 0, line("GET /s?q=%2531", 75))}, false,
			func(s Stats) bool { return s.Decoder.Uncanonical == 0 && s.Detector.Hot == 0 && s.Detector.Keys == 2 }},
		{"bytes that are no lines", []*kgo.Record{{Value: []byte("\x00\xff\n:::\n")}, {Value: nil}}, false,
			func(s Stats) bool { return s.NoHeaders == 2 && s.Decoder.Counts == 0 && s.Decoder.Lines == 2 }},
		{"other headers", []*kgo.Record{{Value: []byte(many), Headers: []kgo.RecordHeader{{Key: "traceparent", Value: []byte("00-1")}}}}, true,
			func(s Stats) bool { return s.NoHeaders == 1 }},
		{"headers that cannot be read", []*kgo.Record{{Value: []byte(many), Headers: []kgo.RecordHeader{{Key: "hotparam-schema", Value: []byte("2")}}}}, false,
			func(s Stats) bool { return s.BadHeaders == 1 && s.Decoder.Packets == 0 }},
		{"another namespace", []*kgo.Record{headed(&wire.RecordHead{Meta: head(1, at).Meta, Namespace: []byte("other"), Partitions: 1}, 0, many)}, false,
			func(s Stats) bool { return s.Foreign == 1 && s.Decoder.Packets == 0 }},
		{"a rule that is not there", []*kgo.Record{headed(head(1, at), 0, "shop.gone.hot_param.q=1:150|c")}, false,
			func(s Stats) bool { return s.Decoder.NoRule == 1 }},
		{"one that comes twice", []*kgo.Record{headed(head(1, at), 0, line("q=1", 60)), headed(head(1, at), 0, line("q=1", 60))}, false,
			func(s Stats) bool { return s.Decoder.Duplicates == 1 && s.Decoder.Sum == 60 }},
		{"a gap", []*kgo.Record{headed(head(1, at), 0, line("q=1", 60)), headed(head(5, at), 0, line("q=1", 60))}, true,
			func(s Stats) bool { return s.Decoder.LostPackets == 3 }},
		{"a gap that is filled", []*kgo.Record{headed(head(1, at), 0), headed(head(3, at), 0), headed(head(2, at), 0)}, false,
			func(s Stats) bool { return s.Decoder.LostPackets == 1 && s.Decoder.Recovered == 1 }},
		{"another number of partitions", []*kgo.Record{headed(&wire.RecordHead{Meta: head(1, at).Meta, Namespace: []byte("shop"), Partitions: 3}, 0, many)}, true,
			func(s Stats) bool { return s.Mismatched == 1 }},
		{"a fast clock", []*kgo.Record{headed(head(1, at.Add(time.Hour)), 0, many), {Value: []byte(line("q=2", n))}}, true,
			func(s Stats) bool { return s.Detector.Late == 0 && s.Detector.Hot == 2 }},
		{"a slow clock", []*kgo.Record{headed(head(1, at.Add(-time.Hour)), 0, many)}, false,
			func(s Stats) bool { return s.Detector.Late == n }},
		{"late, but in time", []*kgo.Record{headed(head(1, at), 0), headed(head(2, at.Add(-5500*time.Millisecond)), 0, many)}, true,
			func(s Stats) bool { return s.Detector.Late == 0 }},
		{"two at the ends of a window", []*kgo.Record{headed(head(1, at.Add(-2*time.Second)), 0, line("q=1", 60)), headed(head(2, at), 0, line("q=1", 60))}, false,
			func(s Stats) bool { return s.Decoder.Sum == 120 }},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := bench(t)
			for i, r := range test.records {
				if r.Timestamp.IsZero() {
					stamped(r, int64(i), at)
				}
				w.record(r, 0, at.Add(10*time.Millisecond))
			}
			w.runDue(at.Add(20 * time.Millisecond))
			w.show()
			w.source.running[w] = struct{}{}
			if s := w.source.Stats(); !test.check(s) {
				t.Errorf("%+v", s)
			}
			if hot := w.published().hot("q=1"); hot != test.hot {
				t.Errorf("hot: %v, want %v", hot, test.hot)
			}
			if w.position != int64(len(test.records)) {
				t.Errorf("position %d, want it after the last of %d", w.position, len(test.records))
			}
		})
	}
}

// If senders stamp records, no count is placed later than its arrival.
func TestSendersTimestamps(t *testing.T) {
	w := bench(t)
	clock := noon.Add(time.Second)
	for i, at := range []time.Time{clock.Add(time.Hour), noon.Add(-time.Hour), time.UnixMilli(-1), clock} {
		w.record(&kgo.Record{Offset: int64(i), Timestamp: at, Value: []byte(line("q=1", 40))}, 0, clock)
	}
	w.runDue(clock)
	if !w.published().hot("q=1") || w.detector.Stats().Late != 40 {
		t.Errorf("%+v, want three of four counted in one window", w.detector.Stats())
	}
	if w.mark.appended.After(clock) || w.now.After(clock.Add(grace)) {
		t.Errorf("the partition is at %v, and the clock at %v", w.mark.appended, clock)
	}
}

// A clock that is set back, or a record older than the one before, does not reset the detector:
// that would clear the hot keys.
func TestTimeDoesNotGoBack(t *testing.T) {
	w := bench(t)
	at := noon.Add(time.Minute)
	w.record(stamped(headed(head(1, at), 0, line("q=1", 150)), 0, at), 0, at)
	w.runDue(at)
	w.runDue(noon)
	w.record(stamped(headed(head(2, noon), 0), 1, noon), 0, noon)
	w.runDue(noon.Add(time.Second))
	if !w.published().hot("q=1") {
		t.Error("the key cooled")
	}
}

// After a loss the high count is unknown. It is also unknown until the backlog is read.
func TestHighIsUnknown(t *testing.T) {
	high := func(w *worker) int64 {
		w.detector.Refresh()
		if p := w.published(); len(p.refreshed) == 1 {
			return p.refreshed[0].High
		}
		t.Fatal("no key is hot")
		return 0
	}
	feed := func(w *worker, seqs ...uint64) {
		for _, seq := range seqs {
			at := noon.Add(time.Duration(seq) * 100 * time.Millisecond)
			w.record(stamped(headed(head(seq, at), 0, line("q=1", 50)), int64(seq), at), 0, at)
			w.runDue(at)
		}
	}
	w := bench(t)
	if feed(w, 9, 10, 11, 12); high(w) != published.Unknown {
		t.Error("known, though the instance has sent records before")
	}
	if feed(w, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24); high(w) == published.Unknown {
		t.Error("unknown, want it known when nothing is missing")
	}
	if feed(w, 26); high(w) != published.Unknown {
		t.Error("known after a gap")
	}
	if feed(w, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40); high(w) == published.Unknown {
		t.Error("unknown when the gap's window has passed")
	}
	w.work(batch{lost: &kgo.ErrDataLoss{ResetTo: 20}}, noon.Add(4*time.Second))
	if w.runDue(noon.Add(4 * time.Second)); high(w) != published.Unknown || w.position != 20 {
		t.Error("known after the brokers lost records")
	}

	// The client started after the first record that counts.
	for begun, unknown := range []bool{false, true} {
		for _, told := range []bool{true, false} {
			w = bench(t)
			if !told {
				w.oldest = -1
			}
			at := noon.Add(2 * time.Second)
			w.spoken = at
			w.record(stamped(headed(head(1, at), 0, line("q=1", 150)), int64(begun), at), 0, at)
			w.handleEnds(ends{asked: at, end: 2, start: 0})
			if w.runDue(at); (high(w) == published.Unknown) != unknown {
				t.Errorf("begun at %d, told before %v: high %d", begun, told, high(w))
			}
		}
	}

	w = bench(t)
	w.report.covered, w.gate.isOpen = false, false
	w.inheritHot(inheritance{})
	feed(w, 21, 22, 23, 24)
	w.handleEnds(ends{asked: noon.Add(3 * time.Second), end: 30})
	if w.published().hot("q=1") || w.report.covered {
		t.Error("published before all is read")
	}
	feed(w, 25, 26, 27, 28, 29)
	if w.reach(); !w.published().hot("q=1") || !w.report.covered {
		t.Error("not published when all is read")
	}
}

// A silence in which an instance could not send counts as a loss: its records may be later than
// windows wait for.
func TestSilenceIsALoss(t *testing.T) {
	w := bench(t)
	for i, second := range []int{1, 2, 4, 9, 15} {
		at := noon.Add(time.Duration(second) * time.Second)
		w.record(stamped(headed(head(uint64(i+1), at), 0), int64(i), at), 0, at)
		if lost := w.in.worker.Equal(at); lost != (second == 15) {
			t.Errorf("at %d s: lost: %v", second, lost)
		}
	}
}

// An adopted key whose rule is gone cools. A key that now belongs to another partition stays
// until that has had time to find it.
func TestAdoptedElsewhere(t *testing.T) {
	whole := quick()
	whole.ID, whole.By.Kind = "whole", rules.ByCombinations
	s := New(Config{
		Connection: kafka.Connection{Brokers: []string{"localhost:1"}},
		Rules:      &rules.Rules{Namespace: "shop", Rules: []rules.Rule{quick(), whole}},
		Publisher:  func(int32) (PartitionPublisher, error) { return nil, nil },
	})
	home := wire.Partition([]byte("shop.whole"), 3)
	r := &redis{entries: make(map[rules.Key]entry), holders: make(map[int32]*publisher)}
	p := &publisher{redis: r, partition: (home + 1) % 3, runs: true}
	r.holders[p.partition] = p
	var hot []published.Hot
	for _, key := range []rules.Key{{Rule: "r", Text: "q=1"}, {Rule: "whole", Text: "q=1"}, {Rule: "gone", Text: "q=1"}} {
		h := published.Hot{Key: key, Since: noon.Add(-time.Hour), Low: 500, High: 600, Rate: 500, Ratio: 50}
		r.entries[key], hot = entry{h, p.partition}, append(hot, h)
	}
	w := s.newWorker(p.partition, noon)
	w.open(3, p)
	w.adopt(inheritance{hot: hot}, noon)
	if _, gone := r.entries[rules.Key{Rule: "gone", Text: "q=1"}]; gone || len(r.entries) != 2 {
		t.Errorf("%v, want the key of the rule that is gone cool", r.entries)
	}
	if e := r.entries[hot[0].Key]; e.Low != 500 || e.Rate != 500 || e.Ratio != 50 || !e.Since.Equal(hot[0].Since) {
		t.Errorf("%+v, want the counts that were published, until there are new ones", e)
	}
	w.letGo(noon.Add(s.lookback() - time.Second))
	if len(r.entries) != 2 {
		t.Errorf("%v, want the key that has moved kept for a while", r.entries)
	}
	w.letGo(noon.Add(s.lookback()))
	if len(r.entries) != 1 {
		t.Errorf("%v, want the key that has moved let go of", r.entries)
	}
}

// Suspects found before a takeover are published after it.
func TestGateKeepsSuspects(t *testing.T) {
	p := &publisher{redis: &redis{holders: make(map[int32]*publisher)}}
	g := &gate{to: p}
	g.Suspects(0, []published.Hot{{Key: rules.Key{Rule: "r", Text: "old"}}})
	g.Suspects(0, []published.Hot{{Key: rules.Key{Rule: "r", Text: "new"}}})
	if p.suspects != nil {
		t.Error("told before the gate is open")
	}
	if g.open(nil, func() {}); len(p.suspects) != 1 || p.suspects[0].Text != "new" {
		t.Errorf("told %v, want the newest", p.suspects)
	}
}

func FuzzRecord(f *testing.F) {
	add := func(r *kgo.Record, stamp int64) {
		var packed []byte
		for _, h := range r.Headers {
			packed = append(packed, h.Key+"="+string(h.Value)+"\x00"...)
		}
		f.Add(packed, r.Value, stamp, int64(3), uint8(1))
	}
	add(headed(head(1, noon), 0, line("q=1", 150)), noon.UnixMilli())
	add(headed(head(1<<63, noon.Add(-time.Hour)), 0, line("q=1", 150), "x"), -1)
	add(&kgo.Record{Value: []byte("shop.r.hot_param.q=1:1|c\n\n")}, 1<<60)
	f.Fuzz(func(t *testing.T, packed, value []byte, stamp, offset int64, kind uint8) {
		w := bench(t)
		r := &kgo.Record{Value: value, Offset: offset & (1<<62 - 1), Timestamp: time.UnixMilli(stamp % (1 << 45)),
			Attrs: kgo.NewRecordAttrs(kgo.RecordAttrsOpts{TimestampType: int8(kind & 1), Control: kind&2 != 0})}
		for h := range bytes.SplitSeq(packed, []byte{0}) {
			key, v, _ := bytes.Cut(h, []byte("="))
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: string(key), Value: v})
		}
		for range 2 {
			w.work(batch{records: []*kgo.Record{r}, logStart: offset}, noon.Add(time.Second))
			w.runDue(noon.Add(1100 * time.Millisecond))
		}
		if w.now.After(noon.Add(1100*time.Millisecond)) || w.mark.complete.After(noon.Add(1100*time.Millisecond)) {
			t.Fatalf("a record moved the time to %v, complete %v", w.now, w.mark.complete)
		}
	})
}

// The counts that instances could not send while a partition was unavailable are missing in the
// windows that the first record afterwards closes.
func TestSilenceIsKnownBeforeTimeMovesOn(t *testing.T) {
	at := noon.Add(time.Second)
	back := at.Add(30 * time.Second)
	for name, first := range map[string]*kgo.Record{
		"of an instance":     headed(head(2, back.Add(-9*time.Second)), 0),
		"of another program": {Value: []byte(line("q=2", 1))},
	} {
		t.Run(name, func(t *testing.T) {
			w := bench(t)
			w.record(stamped(headed(head(1, at), 0, line("q=1", 150)), 0, at), 0, at)
			w.runDue(at.Add(tick))
			w.record(stamped(first, 1, back), 0, back)
			w.runDue(back.Add(tick))
			if !w.published().hot("q=1") {
				t.Error("cooled, though its counts may be missing")
			}
		})
	}
}
