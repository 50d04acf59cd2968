package statsdsource

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// loggedFeed logs the reports of decoders, in order and without times, and passes them on.
type loggedFeed struct {
	aggregator.Feed // nil: it goes nowhere
	log             []string
	packets         []int // number of packets with counts, by read
}

func (f *loggedFeed) note(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf(format, args...))
}

func (f *loggedFeed) Begin() {
	f.packets = append(f.packets, 0)
	f.Feed.Begin()
}

func (f *loggedFeed) Counts(counts []decode.Count) {
	for _, c := range counts {
		f.note("%s counts %d by %s", c.Text, c.N, c.Instance)
	}
	if f.Feed != nil {
		f.packets[len(f.packets)-1]++
		f.Feed.Counts(counts)
	}
}

func (f *loggedFeed) Count(c decode.Count) { f.Counts([]decode.Count{c}) }

func (f *loggedFeed) AddHiddenCounts(when time.Time, n int64) {
	f.note("hidden %d", n)
	if f.Feed != nil {
		f.Feed.AddHiddenCounts(when, n)
	}
}

func (f *loggedFeed) SetHeldBackBound(rule int, bound, untold int64) {
	f.note("held %d %d", bound, untold)
	if f.Feed != nil {
		f.Feed.SetHeldBackBound(rule, bound, untold)
	}
}

func (f *loggedFeed) RecordLoss(when time.Time) {
	f.note("lost")
	if f.Feed != nil {
		f.Feed.RecordLoss(when)
	}
}

func (f *loggedFeed) ReduceLoss(when time.Time) {
	f.note("found")
	if f.Feed != nil {
		f.Feed.ReduceLoss(when)
	}
}

// script returns the packets of instances. Each sends its own in order, some of them missing,
// twice or late. They drop some counts and hold some back.
func script(rnd *rand.Rand, instances, packets int) (all []func() (instance int, packet []byte)) {
	seqs := make([]uint64, instances)
	for range packets {
		i := rnd.IntN(instances)
		seqs[i]++
		m := wire.Meta{Instance: fmt.Append(nil, "api-", i), Incarnation: 1, Seq: seqs[i], Held: 1 + rnd.Int64N(3)}
		if rnd.IntN(10) == 0 {
			m.Unsent = 1 + rnd.Int64N(5)
		}
		var lines []byte
		for range rnd.IntN(30) {
			lines = fmt.Appendf(lines, "\n%sk%d:%d|c", prefixOfTerms, rnd.IntN(200), 1+rnd.IntN(3))
		}
		write := func() (int, []byte) {
			m := m
			m.Start = time.Now().UnixNano()
			return i, append(wire.AppendMeta(nil, m), lines...)
		}
		switch rnd.IntN(20) {
		case 0: // it is missing
		case 1:
			all = append(all, write, write)
		case 2:
			at := max(0, len(all)-1-rnd.IntN(5))
			all = slices.Insert(all, at, write)
		default:
			all = append(all, write)
		}
	}
	return all
}

// However packets arrive, many at once, merged, or one by one with pauses, decoders report the
// same as if they were read packet by packet, in the same order. With several readers the counts
// and losses are the same. No count is late.
func TestReadersReportWhatPacketsSay(t *testing.T) {
	for _, readers := range []int{1, 3} {
		if readers > 1 && runtime.GOOS != "linux" {
			continue
		}
		t.Run(fmt.Sprint(readers), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(uint64(readers), 7))
			rules := testRules(hotRule("terms", 1<<20, time.Minute))
			ctx, cancel := context.WithCancel(t.Context())
			a, err := New(ctx, Config{Rules: rules, Publisher: newRecorder(), Listen: []string{"127.0.0.1:0"}, Readers: readers, Shards: 2})
			if err != nil {
				t.Fatal(err)
			}
			var logs []*loggedFeed
			for i := range a.feeds {
				logs = append(logs, &loggedFeed{Feed: a.feeds[i]})
				a.feeds[i] = logs[i]
			}
			const instances = 6
			var conns []net.Conn
			for range instances { // through one socket the packets of all stay in order
				if len(conns) > 0 && readers == 1 {
					conns = append(conns, conns[0])
					continue
				}
				conn, err := net.Dial("udp", a.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conns = append(conns, conn)
			}
			ran := make(chan error, 1)
			want, model := new(loggedFeed), decode.NewDecoder(rules, wire.Plain)
			packets := script(rnd, instances, 1500)
			var merged [][]byte // not sent yet
			via := 0
			send := func() {
				// A packet that is sent shortly before the end of a tick may arrive in the next one.
				if left := decode.Tick - time.Duration(time.Now().UnixNano())%decode.Tick; left < 5*time.Millisecond {
					time.Sleep(left)
				}
				now := time.Now() // one arrival for all of them
				var err error
				switch len(merged) {
				case 0:
				case 1:
					_, err = conns[via].Write(merged[0])
				default:
					err = writeMerged(conns[via], merged)
				}
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range merged {
					model.Packet(p, now, want)
				}
				merged = merged[:0]
			}
			for i, write := range packets {
				if i == 2*readBatch { // until then they wait in the sockets
					go func() { ran <- a.Run(ctx) }()
				}
				from, p := write()
				if rnd.IntN(5) > 0 { // of few lengths, so that many can be merged
					p = append(p, bytes.Repeat([]byte("\n"), 512-len(p)%512)...)
				}
				if conns[from] != conns[via] || len(merged) > 0 && (len(p) > len(merged[0]) || len(merged[len(merged)-1]) < len(merged[0])) {
					send()
				}
				via = from
				merged = append(merged, p)
				if len(merged) < 10 && rnd.IntN(4) > 0 && i%100 != 99 && i < len(packets)-1 {
					continue
				}
				send()
				for i%100 == 99 && i > 2*readBatch && a.Stats().Decoder.Packets < int64(i+1) { // so that nothing is dropped
					time.Sleep(time.Millisecond)
				}
				if rnd.IntN(3) == 0 {
					time.Sleep(time.Duration(rnd.IntN(300)) * time.Microsecond) // real sockets
				}
			}
			cancel()
			if err := <-ran; err != nil {
				t.Fatal(err)
			}
			s, m := a.Stats(), model.Stats()
			if s.Decoder.Packets != int64(len(packets)) || s.Decoder.Sum != m.Sum || s.Decoder.Duplicates != m.Duplicates ||
				s.Decoder.LostPackets-s.Decoder.Recovered != m.LostPackets-m.Recovered {
				t.Errorf("%+v\nwant %+v", s.Decoder, m)
			}
			if s.Detector.Late != 0 || s.Listener.Dropped != 0 {
				t.Errorf("%d counts are late, %d packets dropped", s.Detector.Late, s.Listener.Dropped)
			}
			var got []string
			most := 0
			for _, l := range logs {
				got = append(got, l.log...)
				most = max(most, slices.Max(l.packets))
			}
			if most < 2 {
				t.Error("no read had several packets")
			}
			if readers > 1 { // whose reports of losses and bounds are turns of one state
				isCount := func(s string) bool { return strings.Contains(s, " counts ") }
				for _, log := range []*[]string{&got, &want.log} {
					*log = slices.DeleteFunc(*log, func(s string) bool { return !isCount(s) })
					slices.Sort(*log)
				}
			}
			if !slices.Equal(got, want.log) {
				for i := range min(len(got), len(want.log)) {
					if got[i] != want.log[i] {
						t.Fatalf("report %d is %q, want %q", i, got[i], want.log[i])
					}
				}
				t.Errorf("%d reports, want %d", len(got), len(want.log))
			}
		})
	}
}
