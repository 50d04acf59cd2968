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

// DefaultListen is the address that StatsD lines are listened for at: the port that
// all clients send to.
const DefaultListen = "127.0.0.1:8125"

// MaxReaders is how many sockets can share a UDP address.
const MaxReaders = 64

const (
	// maxDatagram is the longest packet, line or frame that is taken: other senders
	// may fill jumbo frames, and Unix sockets.
	maxDatagram = 65535
	// socketBuffer is asked for, so that bursts outlast a pause; the system may
	// grant less.
	socketBuffer = 8 << 20
)

const (
	// drainFor is how long the listener goes on reading after its end was asked
	// for, to take what the sockets still hold.
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

// ListenerCounters count connections and packets before their lines are decoded. N is
// int64 in [ListenerStats], and [atomic.Int64] while they count.
type ListenerCounters[N any] struct {
	// Connections are open now, and Accepted have ever been. Refused were closed as
	// [MaxConnections] were open, and all of them sending. Unused and Silent made room for
	// others: the former had sent nothing yet, the latter nothing for a while. AcceptFailed
	// could not be accepted, for example for want of file descriptors.
	Connections, Accepted, Refused, Unused, Silent, AcceptFailed N
	// TooLong are lines, frames and packets over 64 KiB. Lines and frames are passed
	// over. Of packets the whole lines of the first 64 KiB are read.
	TooLong N
	// Truncated are lines and frames that the end of their connection cut off.
	Truncated N
	// Dropped are packets that the system dropped, since the socket's buffer was
	// full or they were damaged. (Linux, UDP.)
	Dropped N
}

// ListenerStats are the counters of a listener since it was made.
type ListenerStats = ListenerCounters[int64]

// listenerStats are the counters of all sources of a listener.
type listenerStats = ListenerCounters[atomic.Int64]

// reader reads packets and gives them to the shards by a decoder and a feed of its own,
// until ctx ends; then what is on its way still.
type reader interface {
	run(ctx context.Context, d *decode.Decoder, out feed) error
}

// feed is where a reader brings what it reads: an [aggregator.Feed].
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
