package statsdsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
)

// maxBatch is the number of bytes after which counts are passed to the shards, so that packets
// of 64 KiB need little more memory than others.
const maxBatch = 256 << 10

// packetReader reads packets from a socket.
type packetReader struct {
	socket   *packetSocket
	receiver *receiver
	drops    drops
	stats    *listenerStats
	decoding *sync.RWMutex // see listener
	index    int           // index of the current message in the last read
	opened   time.Time
	// handsOver lets the shards' goroutines count while the reader is behind.
	handsOver bool
}

func newPacketReader(socket *packetSocket, stats *listenerStats) *packetReader {
	r := &packetReader{decoding: new(sync.RWMutex), socket: socket, stats: stats, opened: time.Now()}
	_ = socket.setReadBuffer(socketBuffer) // any granted size will do
	r.receiver = newReceiver(socket)
	return r
}

// run implements reader. It decodes the packets of each read and spreads them over the shards.
func (r *packetReader) run(ctx context.Context, d *decode.Decoder, out aggregator.Feed) error {
	stop := context.AfterFunc(ctx, r.socket.interrupt)
	defer stop()
	if r.socket.isUDP() && d.WantsPeer() {
		r.receiver.askSources()
		d.SetPeer(func() netip.Addr { return r.receiver.source(r.index) })
	}
	r.wait(ctx)
	failures, checked := 0, time.Time{}
	// before is the time of the last read. No packet that waits now can have arrived before emptied.
	before, emptied := r.opened, r.opened
	var end time.Time // end of draining
	for {
		out.Begin()
		n, err := r.receiver.read()
		r.decoding.RLock()
		now := time.Now()
		first, last := now, now // valid if no packets came, or all that waited were read
		packets, size := 0, 0
		for i := range n {
			message, length, when := r.receiver.message(i, now, emptied)
			if size == 0 {
				first = when
			}
			r.index = i
			for packet := range packetsOf(message, length) {
				packets++
				if d.AdmitsPacket() {
					d.Packet(r.cutTruncated(packet), when, out)
				}
			}
			if i == n-1 && r.receiver.full {
				last = when
			}
			if size += len(message) + 1; size >= maxBatch && i < n-1 {
				out.End(first, when, r.handsOver && now.Sub(first) > behindBy)
				out.Begin()
				size = 0
			}
		}
		if now.Sub(checked).Abs() >= decode.Tick {
			checked = now
			r.check(d, now, out)
		}
		took := now.Sub(before)
		if err == nil && !r.receiver.full {
			emptied = before // the socket was empty at some time after that
		}
		before = now
		d.Advance(last, out)
		out.End(first, last, r.handsOver && now.Sub(first) > behindBy)
		r.decoding.RUnlock()
		switch {
		case err == nil:
			failures = 0
		case !errors.Is(err, os.ErrDeadlineExceeded):
			if failures++; failures > maxFailures || errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("statsd source: listener on %s: %w", r.socket.addr, err)
			}
			_ = base.Sleep(ctx, failurePause)
		}
		switch {
		case ctx.Err() == nil:
			if err != nil {
				r.wait(ctx)
			}
			runtime.Gosched() // send what was published before this thread blocks
			nap(packets, r.receiver.full, took, time.Since(now))
		case end.IsZero():
			end = now.Add(drainFor)
			r.socket.waitUntil(end)
		case now.Before(end): // interrupt replaced the deadline of draining
			r.socket.waitUntil(end)
		default:
			r.decoding.RLock()
			defer r.decoding.RUnlock()
			r.check(d, now, out)
			return nil
		}
	}
}

// packetsOf calls yield for each packet of a message. All have this length, except the last one,
// which may be shorter.
func packetsOf(message []byte, length int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for {
			packet := message[:min(length, len(message))]
			message = message[len(packet):]
			if !yield(packet) || len(message) == 0 {
				return
			}
		}
	}
}

// wait lets reads wait for a tick, unless ctx has ended. So the shards get the time even if no
// packets arrive.
func (r *packetReader) wait(ctx context.Context) {
	r.socket.waitUntil(time.Now().Add(decode.Tick))
	if ctx.Err() != nil {
		r.socket.interrupt()
	}
}

// cutTruncated returns the packet, without its last line if that was truncated.
func (r *packetReader) cutTruncated(packet []byte) []byte {
	if len(packet) <= maxDatagram {
		return packet
	}
	r.stats.TooLong.Add(1)
	return packet[:bytes.LastIndexByte(packet, '\n')+1]
}

// check counts the packets that the system has dropped. Packets of other clients have no
// sequence numbers, so nothing else shows that counts are missing.
func (r *packetReader) check(d *decode.Decoder, now time.Time, out aggregator.Feed) {
	if n := r.drops.since(r.socket); n > 0 {
		r.stats.Dropped.Add(n)
		d.Dropped(now, out)
	}
}
