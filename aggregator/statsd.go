package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/net/ipv4"
)

const (
	// readBatch is how many packets are read at a time where the system can.
	readBatch = 64
	// maxDatagram is the longest packet that is taken: other senders may fill
	// jumbo frames.
	maxDatagram = 65535
	// socketBuffer is asked for, so that bursts outlast a pause; the system may
	// grant less.
	socketBuffer = 8 << 20
)

// statsd reads packets from a UDP socket.
type statsd struct {
	conn     *net.UDPConn
	messages []ipv4.Message
}

// listenStatsD opens the socket.
func listenStatsD(ctx context.Context, addr string) (*statsd, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("aggregator: StatsD listener on %s: %w", addr, err)
	}
	s := &statsd{conn: conn.(*net.UDPConn), messages: make([]ipv4.Message, readBatch)}
	_ = s.conn.SetReadBuffer(socketBuffer) // what it grants is good enough
	for i := range s.messages {
		s.messages[i].Buffers = [][]byte{make([]byte, maxDatagram)}
	}
	return s, nil
}

func (s *statsd) close() error { return s.conn.Close() }

const (
	// drainFor is how long the listener goes on reading after its end was asked
	// for, to take what the socket still holds.
	drainFor = 50 * time.Millisecond
	// maxFailures is how many reads in a row may fail before the listener gives
	// up, with a pause after each.
	maxFailures  = 50
	failurePause = 20 * time.Millisecond
)

// run reads until ctx ends, and then what the socket still holds. Each read's
// packets are decoded and spread over the shards.
func (s *statsd) run(ctx context.Context, d *Decoder, out *spread) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Now().Add(drainFor)) })
	defer stop()
	conn := ipv4.NewPacketConn(s.conn) // batches are the same for IPv6
	failures := 0
	for {
		out.begin()
		n, err := conn.ReadBatch(s.messages, 0)
		now := time.Now()
		for i := range n {
			m := &s.messages[i]
			d.Packet(m.Buffers[0][:m.N], now, out)
		}
		out.end(now)
		if err == nil {
			failures = 0
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if failures++; failures > maxFailures || errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("aggregator: StatsD listener: %w", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(failurePause):
		}
	}
}
