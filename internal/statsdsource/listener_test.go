package statsdsource

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/testenv"
)

// listening is a running aggregator with a socket of each kind.
type listening struct {
	*Source
	t     *testing.T
	feeds []*recordedFeed
	end   func() // stops it after all sent packets have arrived
}

// listen runs an aggregator of one rule whose keys are all hot, on all kinds of address. Its
// window is long, so no count leaves it.
func listen(t *testing.T, readers, shards int) *listening {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, Config{
		Rules: testRules(hotRule("terms", 1, time.Hour)), Publisher: newRecorder(), Readers: readers, Shards: shards,
		Listen: []string{"127.0.0.1:0", "tcp://127.0.0.1:0", "unix://" + socketPath(t), "unixstream://" + socketPath(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	feeds := record(a)
	ran := make(chan error, 1)
	go func() { ran <- a.Run(ctx) }()
	end := sync.OnceFunc(func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(end)
	return &listening{a, t, feeds, end}
}

// dial connects to the nth address.
func (l *listening) dial(n int) net.Conn {
	l.t.Helper()
	addr := l.Addrs()[n]
	conn, err := net.Dial(addr.Network(), addr.String())
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// await waits until the stats are as wanted.
func (l *listening) await(what string, is func(Stats) bool) {
	l.t.Helper()
	testenv.Eventually(l.t, what, func() bool { return is(l.Stats()) }, func() any { return l.Stats() })
}

func (l *listening) write(conn io.Writer, p string) {
	l.t.Helper()
	if _, err := conn.Write([]byte(p)); err != nil {
		l.t.Fatal(err)
	}
}

// counts ends the aggregator and returns the counts of all shards, by key. No key is in two of
// them.
func (l *listening) counts() map[string]int64 {
	l.end()
	sums := make(map[string]int64)
	for _, f := range l.feeds {
		for key, n := range f.sums {
			sums[key] += n
		}
	}
	if n := l.Stats().Detector.Keys; n != int64(len(sums)) {
		l.t.Errorf("the shards have %d keys of %d", n, len(sums))
	}
	return sums
}

// recordedFeed is a feed that records the counts that it passes on.
type recordedFeed struct {
	aggregator.Feed
	sums map[string]int64 // sums of the counts, by key
	size int              // bytes of the texts since Begin,
	most int              // and at most
	lost []time.Time
}

// record replaces the feeds of an aggregator that does not run yet by recorded ones.
func record(a *Source) (all []*recordedFeed) {
	for i := range a.feeds {
		f := &recordedFeed{Feed: a.shards.Feed(i), sums: make(map[string]int64)}
		a.feeds[i] = f
		all = append(all, f)
	}
	return all
}

func (f *recordedFeed) Begin() {
	f.size = 0
	f.Feed.Begin()
}

func (f *recordedFeed) Counts(counts []decode.Count) {
	for i := range counts {
		f.sums[string(counts[i].Text)] += counts[i].N
		f.size += len(counts[i].Text)
	}
	f.most = max(f.most, f.size)
	f.Feed.Counts(counts)
}

func (f *recordedFeed) RecordLoss(when time.Time) {
	f.lost = append(f.lost, when)
	f.Feed.RecordLoss(when)
}

const prefixOfTerms = "shop.terms.hot_param."

// Packets of almost 64 KiB are accepted whole by all transports.
func TestListenerTakesLongPackets(t *testing.T) {
	l := listen(t, 1, 2)
	pad := strings.Repeat("x:1|c\n", 10_000)
	for n, name := range []string{"udp", "tcp", "unixgram", "unixstream"} {
		packet := fmt.Sprintf("%sfirst-%s:1|c\n%s%[1]slast-%[2]s:1|c\n", prefixOfTerms, name, pad)
		l.write(l.dial(n), packet)
	}
	framed := l.dial(1)
	l.write(framed, withLength(fmt.Sprintf("%sfirst-frame:1|c\n%s%[1]slast-frame:1|c", prefixOfTerms, pad)))
	l.await("all counts", func(s Stats) bool { return s.Decoder.Counts == 10 })
	if s := l.Stats(); s.Listener.TooLong != 0 || s.Decoder.Foreign+s.Decoder.Malformed != 50_000 {
		t.Errorf("stats %+v", s)
	}
	if got := l.counts(); len(got) != 10 {
		t.Errorf("counted %v", got)
	}
}

// The whole lines in the first 64 KiB of a longer packet are read.
func TestListenerCutsWhatIsTooLong(t *testing.T) {
	l := listen(t, 1, 1)
	gram := l.dial(2).(*net.UnixConn)
	_ = gram.SetWriteBuffer(1 << 20)
	l.write(gram, prefixOfTerms+"first:1|c\n"+prefixOfTerms+strings.Repeat("k", 70_000)+":1|c")
	l.write(gram, prefixOfTerms+"second:1|c")
	l.await("the second packet", func(s Stats) bool { return s.Decoder.Counts == 2 })
	if s := l.Stats(); s.Listener.TooLong != 1 || s.Decoder.Malformed != 0 {
		t.Errorf("stats %+v", s)
	}
}

// Several readers share one UDP port, which no other listener gets. Each serves some of the
// senders.
func TestReadersShareAPort(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("this system does not spread senders over sockets")
	}
	l := listen(t, 4, 2)
	if n := len(l.listener.packets); n != 5 { // and the Unix socket
		t.Fatalf("%d readers of packets", n)
	}
	for _, r := range l.listener.packets[:4] {
		if r.socket.addr.String() != l.Addr().String() {
			t.Errorf("a reader is at %v, the first at %v", r.socket.addr, l.Addr())
		}
	}
	for _, readers := range []int{1, 4} {
		if other, err := listenStatsD(t.Context(), []string{l.Addr().String()}, readers); err == nil {
			_ = other.close()
			t.Errorf("another listener of %d readers has the same port", readers)
		}
	}
	const senders = 64
	for i := range senders {
		l.write(l.dial(0), fmt.Sprintf("%sk%d:%d|c", prefixOfTerms, i, i+1))
	}
	l.await("all counts", func(s Stats) bool { return s.Decoder.Counts == senders })
	busy := 0
	for _, d := range l.decoders {
		if d.Stats().Packets > 0 {
			busy++
		}
	}
	if busy < 2 {
		t.Errorf("%d readers got all", busy) // by chance: 4 in 4^64
	}
	for key, n := range l.counts() {
		if key != fmt.Sprint("k", n-1) {
			t.Errorf("%q counts %d", key, n)
		}
	}
}

// A sender that connects again reaches another reader, and loses nothing.
func TestSenderThatDialsAnewLosesNothing(t *testing.T) {
	l := listen(t, 4, 2)
	const packets = 200
	for i := range packets {
		network := i % len(l.Addrs())
		l.write(l.dial(network), liveHead(uint64(i+1))+"\n"+prefixOfTerms+"k:1|c\n")
		l.await("the packet", func(s Stats) bool { return s.Decoder.Counts == int64(i+1) })
	}
	s := l.Stats().Decoder
	if s.LostPackets != 0 || s.Duplicates != 0 || s.Senders != 1 || s.Sum != packets {
		t.Errorf("stats %+v", s)
	}
	for _, d := range l.decoders {
		if d.Stats().Packets == s.Packets {
			t.Error("one reader got all")
		}
	}
}

// Packets in sockets and connections at the time of the end are still counted.
func TestListenerDrainsAllTransports(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, Config{
		Rules: testRules(hotRule("terms", 1, time.Hour)), Publisher: newRecorder(),
		Listen: []string{"127.0.0.1:0", "tcp://127.0.0.1:0", "unix://" + socketPath(t), "unixstream://" + socketPath(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range a.Addrs() {
		conn, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		send(t, conn, prefixOfTerms+"k:1|c\n"+prefixOfTerms+"k:1|c\n")
	}
	cancel() // before Run has accepted or read anything
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if s := a.Stats(); s.Decoder.Sum != 8 || s.Listener.Accepted != 2 || s.Listener.Connections != 0 {
		t.Errorf("stats %+v", s)
	}
}

// During a flood of meaningless packets on all transports good counters are counted, and memory
// stays bounded.
func TestListenerUnderAFlood(t *testing.T) {
	l := listen(t, 2, 2)
	before := heap()
	const good, rounds, atOnce = 200, 150, 8
	var flooding sync.WaitGroup
	for n := range l.Addrs() {
		conn := l.dial(n)
		flooding.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(n)))
			for round := range rounds {
				for range atOnce {
					if _, err := conn.Write(garbage(rnd)); err != nil {
						t.Error(err)
						return
					}
				}
				// Only a sender that waits loses nothing by UDP.
				for n == 0 && t.Context().Err() == nil && l.decoders[0].Stats().Packets+l.decoders[1].Stats().Packets < int64(atOnce*(round+1)) {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	conns := []net.Conn{l.dial(0), l.dial(1), l.dial(2), l.dial(3)}
	for i := range good {
		l.write(conns[i%4], fmt.Sprintf("%sgood-%d:3|c\n", prefixOfTerms, i))
		time.Sleep(100 * time.Microsecond) // so that they are among the others
	}
	flooding.Wait()
	l.await("the good counts", func(s Stats) bool { return s.Decoder.Sum >= 3*good })
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	if s := l.Stats(); s.Listener.Dropped != 0 || s.Decoder.Malformed < rounds {
		t.Errorf("stats %+v", s)
	}
	got := l.counts()
	for i := range good {
		if n := got[fmt.Sprint("good-", i)]; n != 3 {
			t.Errorf("good-%d counts %d", i, n)
		}
	}
}

// heap returns the number of bytes in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// garbage returns a packet of random bytes, or of nearly correct lines, without a count of a good
// key.
func garbage(rnd *rand.Rand) []byte {
	p := make([]byte, 1+rnd.IntN(1400))
	for i := range p {
		p[i] = byte(rnd.Uint32())
	}
	switch rnd.IntN(5) {
	case 0:
		p = append([]byte(prefixOfTerms), p...)
	case 1:
		p = []byte("hotparam.meta:1|c|#v:1,i:x,e:zz,s:-1\n" + strings.Repeat(prefixOfTerms+"%:1|c\n", 20))
	case 2:
		p = []byte(strings.Repeat(prefixOfTerms+"k:-99999999999999999999|c|@0\n", 20))
	case 3:
		p = []byte(strings.Repeat("\n|:|#@", 200))
	}
	return p
}

// Instances that send to several readers are reported once.
func TestInstancesOfAllReaders(t *testing.T) {
	l := listen(t, 2, 1)
	for n := range l.Addrs() {
		l.write(l.dial(n), strings.Replace(liveHead(1), "api-1", fmt.Sprint("api-", n), 1)+"\n")
	}
	l.await("all instances", func(s Stats) bool { return s.Decoder.Senders == 4 })
	if got := l.decoders[2].Instances(time.Now()); len(got) != 4 || got[3].Name != "api-3" {
		t.Errorf("instances %v", got)
	}
}

// Many packets of almost 64 KiB in one read are passed to the shards in parts.
func TestLongPacketsNeedLittleMemory(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a, err := New(ctx, Config{
		Rules: testRules(hotRule("terms", 1, time.Hour)), Publisher: newRecorder(), Shards: 1,
		Listen: []string{"unix://" + socketPath(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
	recorded := record(a)
	const packets, size = 9, 60_000 // a Unix socket holds some ten
	for range packets {
		conn, err := net.Dial(a.Addr().Network(), a.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		send(t, conn, prefixOfTerms+strings.Repeat("k", size)+":1|c")
	}
	cancel() // before Run has read anything
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if n := a.Stats().Decoder.Counts; n != packets {
		t.Fatalf("%d are counted of %d", n, packets)
	}
	most := recorded[0].most
	if most > packets*size*9/10 {
		t.Errorf("a batch holds %d bytes", most)
	}
}
