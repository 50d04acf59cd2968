package statsdsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
)

// DefaultListen is the default address: the port that all StatsD clients send to.
const DefaultListen = "127.0.0.1:8125"

// socketReader reads packets until ctx ends and the sockets are empty, and passes them to the
// shards through its own decoder and feed.
type socketReader interface {
	run(ctx context.Context, d *decode.Decoder, out aggregator.Feed) error
}

// listener receives StatsD lines at all addresses, with a reader for each packet socket and one
// for all connections.
type listener struct {
	addrs   []net.Addr
	packets []*packetReader
	streams *streamReader // nil if no address has connections
	stats   *listenerStats
	// decoding is held for reading while a reader decodes and counts the packets it has read. So
	// a caller that holds the lock runs between two reads of every reader.
	decoding sync.RWMutex
}

// listenStatsD opens the addresses, those of UDP with one socket per reader.
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
			l.streams.decoding = &l.decoding
		}
		l.streams.listeners = append(l.streams.listeners, opened)
		l.addrs = append(l.addrs, opened.Addr())
		return nil
	}
	sockets, err := listenPackets(ctx, addr, readers)
	if err != nil {
		return err
	}
	l.addrs = append(l.addrs, sockets[0].addr)
	for _, socket := range sockets {
		reader := newPacketReader(socket, l.stats)
		reader.decoding = &l.decoding
		l.packets = append(l.packets, reader)
	}
	return nil
}

// readers returns all readers.
func (l *listener) readers() []socketReader {
	var all []socketReader
	for _, r := range l.packets {
		all = append(all, r)
	}
	if l.streams != nil {
		all = append(all, l.streams)
	}
	return all
}

// run reads until ctx ends or a reader fails, and returns when all readers have ended.
func (l *listener) run(ctx context.Context, decoders []*decode.Decoder, feeds []aggregator.Feed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readers := l.readers()
	// A hand-over takes a quarter of a reader's time. It pays only if another processor would
	// otherwise be idle; one is left to the rest of the machine.
	spare := runtime.GOMAXPROCS(0) > len(readers)+1
	for _, r := range l.packets {
		r.handsOver = spare
	}
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
		errs = append(errs, r.socket.close())
	}
	if l.streams != nil {
		errs = append(errs, l.streams.close())
	}
	return errors.Join(errs...)
}
