package statsdsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator/decode"
)

// maxBatch is after how many bytes counts are passed to the shards, so that packets of 64 KiB
// need little more memory than others.
const maxBatch = 256 << 10

// packetReader reads packets from a socket.
type packetReader struct {
	conn     packetConn
	receiver *receiver
	drops    drops
	stats    *listenerStats
	decoding *sync.RWMutex // see listener
	at       int           // of the packet at hand, among those that were read
	opened   time.Time
}

func newPacketReader(conn packetConn, stats *listenerStats) (*packetReader, error) {
	r := &packetReader{decoding: new(sync.RWMutex), conn: conn, stats: stats, opened: time.Now()}
	_ = conn.SetReadBuffer(socketBuffer) // what it grants is good enough
	var err error
	r.receiver, err = newReceiver(conn)
	return r, err
}

// run implements reader. Each read's packets are decoded and spread over the shards.
func (r *packetReader) run(ctx context.Context, d *decode.Decoder, out feed) error {
	stop := context.AfterFunc(ctx, func() { _ = r.conn.SetReadDeadline(time.Now()) })
	defer stop()
	if _, isUDP := r.conn.(*net.UDPConn); isUDP && d.WantsPeer() {
		r.receiver.askSources()
		d.SetPeer(func() netip.Addr { return r.receiver.source(r.at) })
	}
	r.wait(ctx)
	failures, checked := 0, time.Time{}
	before, emptied := r.opened, r.opened // the last read, and when no packet waited
	var end time.Time                     // of the draining
	for {
		out.Begin()
		n, err := r.receiver.read()
		r.decoding.RLock()
		now := time.Now()
		first, last := now, now // the socket was empty
		size := 0
		for i := range n {
			packet, when := r.receiver.packet(i, now, emptied)
			if size == 0 {
				first = when
			}
			if r.at = i; d.AdmitsPacket() {
				d.Packet(r.whole(packet), when, out)
			}
			if i == readBatch-1 {
				last = when
			}
			if size += len(packet) + 1; size >= maxBatch && i < n-1 {
				out.End(first, when, now.Sub(first) > behindBy)
				out.Begin()
				size = 0
			}
		}
		if now.Sub(checked).Abs() >= decode.Tick {
			checked = now
			r.check(d, now, out)
		}
		if err == nil && n < readBatch {
			emptied = before
		}
		before = now
		d.Advance(last, out)
		out.End(first, last, now.Sub(first) > behindBy)
		r.decoding.RUnlock()
		switch {
		case err == nil:
			failures = 0
		case !errors.Is(err, os.ErrDeadlineExceeded):
			if failures++; failures > maxFailures || errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("statsd source: listener on %s: %w", r.conn.LocalAddr(), err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(failurePause):
			}
		case ctx.Err() == nil:
			r.wait(ctx)
		case end.IsZero():
			end = now.Add(drainFor)
			_ = r.conn.SetReadDeadline(end)
		case now.Before(end): // ctx's own deadline came after that of draining
			_ = r.conn.SetReadDeadline(end)
		default:
			r.decoding.RLock()
			defer r.decoding.RUnlock()
			r.check(d, now, out)
			return nil
		}
	}
}

// wait sets how long reads wait, unless ctx has ended. The shards learn the time also when no
// packets arrive.
func (r *packetReader) wait(ctx context.Context) {
	_ = r.conn.SetReadDeadline(time.Now().Add(decode.Tick))
	if ctx.Err() != nil {
		_ = r.conn.SetReadDeadline(time.Now())
	}
}

// whole returns a packet without its last line if that was truncated for lack of room.
func (r *packetReader) whole(packet []byte) []byte {
	if len(packet) <= maxDatagram {
		return packet
	}
	r.stats.TooLong.Add(1)
	return packet[:bytes.LastIndexByte(packet, '\n')+1]
}

// check counts the packets that the system has dropped. Packets of other clients have no
// numbers, so nothing else shows that counts are missing.
func (r *packetReader) check(d *decode.Decoder, now time.Time, out feed) {
	if n := r.drops.since(r.conn); n > 0 {
		r.stats.Dropped.Add(n)
		d.Dropped(now, out)
	}
}
