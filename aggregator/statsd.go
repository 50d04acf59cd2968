package aggregator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/hotparam/hotparam"
)

const (
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
	receiver *receiver
}

// listenStatsD opens the socket.
func listenStatsD(ctx context.Context, addr string) (*statsd, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, fmt.Errorf("aggregator: StatsD listener on %s: %w", addr, err)
	}
	s := &statsd{conn: conn.(*net.UDPConn)}
	_ = s.conn.SetReadBuffer(socketBuffer) // what it grants is good enough
	if s.receiver, err = newReceiver(s.conn); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("aggregator: StatsD listener on %s: %w", addr, err)
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
	// behindBy is how long packets may wait in the socket before the reader no
	// longer does all the work itself. (Where the system does not tell when they
	// came, it always does.)
	behindBy = 5 * time.Millisecond
	// instancesEvery is how often the instances are told.
	instancesEvery = time.Second
)

// run reads until ctx ends, and then what the socket still holds. Each read's
// packets are decoded and spread over the shards; once a second it tells which
// instances are live.
func (s *statsd) run(ctx context.Context, d *Decoder, out *spread, instances func([]hotparam.Instance)) error {
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetReadDeadline(time.Now()) })
	defer stop()
	s.wait(ctx)
	failures, told := 0, time.Time{}
	var end time.Time // of the draining
	for {
		out.begin()
		n, err := s.receiver.read()
		now := time.Now()
		first, last := now, now // the socket was empty
		for i := range n {
			packet, when := s.receiver.packet(i, now)
			d.Packet(packet, when, out)
			if i == 0 {
				first = when
			}
			if i == readBatch-1 {
				last = when
			}
		}
		d.Advance(last, out)
		out.end(first, last, now.Sub(first) > behindBy)
		if now.Sub(told) >= instancesEvery {
			told = now
			instances(d.Instances(now))
		}
		switch {
		case err == nil:
			failures = 0
		case !errors.Is(err, os.ErrDeadlineExceeded):
			if failures++; failures > maxFailures || errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("aggregator: StatsD listener: %w", err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(failurePause):
			}
		case ctx.Err() == nil:
			s.wait(ctx)
		case end.IsZero():
			end = now.Add(drainFor)
			_ = s.conn.SetReadDeadline(end)
		case now.Before(end): // ctx's own deadline came after that of draining
			_ = s.conn.SetReadDeadline(end)
		default:
			return nil
		}
	}
}

// wait sets how long reads wait, unless ctx has ended: the shards hear of the
// time when no packets come, too.
func (s *statsd) wait(ctx context.Context) {
	_ = s.conn.SetReadDeadline(time.Now().Add(tick))
	if ctx.Err() != nil {
		_ = s.conn.SetReadDeadline(time.Now())
	}
}
