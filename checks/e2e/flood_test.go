package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

const (
	flood     = 240_000 // distinct values
	pipelined = 64      // requests sent before the first answer is read
)

// One instance gets a flood of distinct values, as fast as possible, and in its midst a hot key
// starts. Every request is answered, only the hot key is limited, memory stays bounded, and every
// dropped count is reported.
func TestFloodOfDistinctValues(t *testing.T) {
	f := newFleet(t, quickCommands(t), searchRule)
	f.memory = "4MB"
	daemon, apis := f.startAggregator(), f.startAPIs(1)

	const clients = 2
	var work sync.WaitGroup
	errs := make(chan error, clients)
	answered := make([]atomic.Int64, clients)
	start := time.Now()
	for i := range clients {
		work.Go(func() { errs <- sendFlood(apis[0].url, i*flood/clients, (i+1)*flood/clients, &answered[i]) })
	}
	within(t, 2*time.Minute, "a quarter of the flood", func() bool { return answered[0].Load() > flood/clients/4 })
	from := answered[0].Load()
	hot := flowsAt(apis, "/search?q=phone", phoneRate, mayBeLimited)[0]
	stop := f.beginFlows(hot)
	f.awaitHot(3*time.Second, apis, phone)
	within(t, patience, "phone refused", func() bool {
		all := hot.all()
		return len(all) > 0 && all[len(all)-1].refused()
	})
	if n := answered[0].Load(); n == flood/clients {
		t.Errorf("the flood was over (%d) before the hot key was found: nothing is shown", n)
	} else {
		t.Logf("found and limited while one of %d clients sent %d requests", clients, n-from)
	}
	work.Wait()
	took := time.Since(start)
	stop()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	mustBeGood(t, []*flow{hot})
	t.Logf("%d requests answered in %v, %.0f/s", flood, took, flood/took.Seconds())
	f.checkBooks(daemon, apis[0], int64(flood+len(hot.all())))
	checkPeak(t, apis[0].Process, 200<<20)
	checkPeak(t, daemon.Process, 4<<20+100<<20)
	if bytes := daemon.metric("hotparam_window_bytes"); bytes > 4e6 {
		t.Errorf("hotparam_window_bytes = %v, want at most 4MB", bytes)
	}
	if aged := daemon.metric("hotparam_statsd_aged_total"); aged == 0 {
		t.Error("hotparam_statsd_aged_total = 0: the budget of lines did not bind, so nothing is shown")
	}
}

// checkBooks follows every request from the instance to the aggregator: each is counted or
// reported as lost, and none twice.
func (f *fleet) checkBooks(daemon *daemon, a *api, requests int64) {
	f.t.Helper()
	var in instance
	within(f.t, patience, "all requests in the collector's books", func() bool {
		in = a.state()
		return in.Collector.Counts+in.Collector.Aged+in.Collector.Dropped.Sum() >= requests
	})
	if got := in.Collector.Counts + in.Collector.Aged + in.Collector.Dropped.Sum(); got != requests || in.Collector.Unsent != 0 {
		f.t.Errorf("collector: %d sent + %d aged + %d dropped, want %d in sum; %d unsent", in.Collector.Counts, in.Collector.Aged, in.Collector.Dropped.Sum(), requests, in.Collector.Unsent)
	}
	within(f.t, patience, "all packets in the aggregator's books", func() bool {
		return daemon.metric("hotparam_statsd_packets_total")+daemon.metric("hotparam_statsd_lost_packets_total") >= float64(in.Collector.Packets)
	})
	packets, lost := daemon.metric("hotparam_statsd_packets_total"), daemon.metric("hotparam_statsd_lost_packets_total")
	lines, counts := daemon.metric("hotparam_statsd_lines_total"), daemon.metric("hotparam_statsd_counts_total")
	f.t.Logf("collector: %+v; aggregator: %v packets, %v lost, %v counts", in.Collector, packets, lost, counts)
	if packets+lost != float64(in.Collector.Packets) {
		f.t.Errorf("%v packets arrived and %v are told as lost, of %d", packets, lost, in.Collector.Packets)
	}
	if origins := daemon.metric("hotparam_statsd_origins_total"); lines != counts+origins || lost == 0 && lines != float64(in.Collector.Lines) {
		f.t.Errorf("%v lines arrived, %v of them counts, of %d, with %v packets lost", lines, counts, in.Collector.Lines, lost)
	}
}

// checkPeak checks that a process never held more than so many bytes.
func checkPeak(t *testing.T, p *testenv.Process, limit int64) {
	t.Helper()
	_, peak := p.Memory()
	t.Logf("process %d: peak of %d MiB resident", p.PID(), peak>>20) // 0 if the system does not report it
	if peak > limit {
		t.Errorf("process %d: peak of %d MiB resident, want at most %d", p.PID(), peak>>20, limit>>20)
	}
}

// sendFlood sends one request for each number from first to last, pipelined over one connection so
// that the client costs little compared to the server. Each must be answered with 200.
func sendFlood(url string, first, last int, answered *atomic.Int64) error {
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		return err
	}
	defer conn.Close()
	answers := bufio.NewReaderSize(conn, 64<<10)
	var requests bytes.Buffer
	for n := first; n < last; {
		if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
			return err
		}
		requests.Reset()
		batch := min(pipelined, last-n)
		for i := range batch {
			fmt.Fprintf(&requests, "GET /search?q=value-%d HTTP/1.1\r\nHost: shop\r\n\r\n", n+i)
		}
		if _, err := conn.Write(requests.Bytes()); err != nil {
			return err
		}
		for i := range batch {
			if err := readOK(answers, fmt.Sprintf("results for \"value-%d\"\n", n+i)); err != nil {
				return fmt.Errorf("request %d: %w", n+i, err)
			}
		}
		n += batch
		answered.Add(int64(batch))
	}
	return nil
}

// readOK reads one answer, which must have status 200 and this body.
func readOK(r *bufio.Reader, body string) error {
	status, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if string(status) != "HTTP/1.1 200 OK\r\n" {
		return fmt.Errorf("status %q", status)
	}
	for { // headers
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) == 2 {
			break
		}
	}
	got := make([]byte, len(body))
	if _, err := io.ReadFull(r, got); err != nil {
		return err
	}
	if string(got) != body {
		return fmt.Errorf("body %q, want %q", got, body)
	}
	return nil
}
