package statsdsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/wire"
)

// DefaultListen is the default address: the port that all StatsD clients send to.
const DefaultListen = "127.0.0.1:8125"

// MaxReaders is how many sockets can share a UDP address.
const MaxReaders = 64

const (
	// maxDatagram is the longest packet, line or frame that is accepted: other senders may
	// fill jumbo frames, and Unix sockets.
	maxDatagram = 65535
	// socketBuffer is asked for, so that bursts outlast a pause; the system may
	// grant less.
	socketBuffer = 8 << 20
)

const (
	// drainFor is how long the listener continues to read after ctx ends, to empty the
	// sockets.
	drainFor = 50 * time.Millisecond
	// maxFailures is how many reads in a row may fail before the listener gives up. There is
	// a pause after each.
	maxFailures  = 50
	failurePause = 20 * time.Millisecond
	// behindBy is how long packets may wait in the socket before the reader leaves counting
	// to the shards. (Where the system does not report their arrival, it never does.)
	behindBy = 5 * time.Millisecond
	// instancesEvery is how often the instances are published.
	instancesEvery = time.Second
)

// ListenerStats count connections and packets before their lines are decoded.
type ListenerStats struct {
	// Connections are open now, and Accepted have ever been. Refused were closed as
	// [MaxConnections] were open, and all of them sending. Unused and Silent made room for
	// others: the former had sent nothing yet, the latter nothing for a while. AcceptFailed
	// could not be accepted, for example for want of file descriptors.
	Connections, Accepted, Refused, Unused, Silent, AcceptFailed int64
	// TooLong are lines, frames and packets over 64 KiB: lines and frames are
	// passed over, of packets the whole lines of the first 64 KiB are read.
	TooLong int64
	// Truncated are lines and frames that the end of their connection cut off.
	Truncated int64
	// Dropped are packets that the system dropped, since the socket's buffer was
	// full or they were damaged. (Linux, UDP.)
	Dropped int64
}

// listenerStats are the counters of all readers of a listener.
type listenerStats struct {
	connections, accepted, refused, unused, silent, acceptFailed atomic.Int64
	tooLong, truncated, dropped                                  atomic.Int64
}

func (s *listenerStats) load() ListenerStats {
	return ListenerStats{
		Connections: s.connections.Load(), Accepted: s.accepted.Load(), Refused: s.refused.Load(),
		Unused: s.unused.Load(), Silent: s.silent.Load(), AcceptFailed: s.acceptFailed.Load(),
		TooLong: s.tooLong.Load(), Truncated: s.truncated.Load(), Dropped: s.dropped.Load(),
	}
}

// reader reads packets until ctx ends and the sockets are empty, and passes them to the
// shards through a decoder and a feed of its own.
type reader interface {
	run(ctx context.Context, d *decode.Decoder, out feed) error
}

// feed receives the counts of a reader: an [aggregator.Feed].
type feed interface {
	decode.PacketHandler
	Begin()
	End(arrived, now time.Time, behind bool)
}

// listener takes StatsD lines from all addresses: a reader for each socket of packets,
// and one for all connections.
type listener struct {
	addrs   []net.Addr
	packets []*packetReader
	streams *streamReader // nil: no address has connections
	stats   *listenerStats
}

// listenStatsD opens the addresses; each of UDP with as many sockets as there are to
// be readers.
func listenStatsD(ctx context.Context, addresses []string, readers int) (*listener, error) {
	l := &listener{stats: new(listenerStats)}
	for _, a := range addresses {
		addr, err := wire.ParseAddress(a)
		if err == nil {
			err = l.open(ctx, addr, readers)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("statsd source: listener on %s: %w", a, err), l.close())
		}
	}
	return l, nil
}

func (l *listener) open(ctx context.Context, addr wire.Address, readers int) error {
	if addr.IsStream() {
		opened, err := listenStream(ctx, addr)
		if err != nil {
			return err
		}
		if l.streams == nil {
			l.streams = newStreamReader(l.stats)
		}
		l.streams.listeners = append(l.streams.listeners, opened)
		l.addrs = append(l.addrs, opened.Addr())
		return nil
	}
	sockets, err := listenPackets(ctx, addr, readers)
	if err != nil {
		return err
	}
	l.addrs = append(l.addrs, sockets[0].LocalAddr())
	for _, socket := range sockets {
		reader, openErr := newPacketReader(socket, l.stats)
		l.packets = append(l.packets, reader) // to be closed in any case
		err = errors.Join(err, openErr)
	}
	return err
}

// readers are all of them.
func (l *listener) readers() []reader {
	var all []reader
	for _, r := range l.packets {
		all = append(all, r)
	}
	if l.streams != nil {
		all = append(all, l.streams)
	}
	return all
}

// run reads until ctx ends or a reader fails, and returns when all have ended.
func (l *listener) run(ctx context.Context, decoders []*decode.Decoder, feeds []feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers := l.readers()
	errs := make([]error, len(readers))
	var running sync.WaitGroup
	for i, r := range readers {
		running.Go(func() {
			defer cancel()
			errs[i] = r.run(ctx, decoders[i], feeds[i])
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// close closes the sockets.
func (l *listener) close() error {
	var errs []error
	for _, r := range l.packets {
		errs = append(errs, r.conn.Close())
	}
	if l.streams != nil {
		errs = append(errs, l.streams.close())
	}
	return errors.Join(errs...)
}
