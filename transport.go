package hotparam

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/wire"
)

// Transport is how counts leave the process.
type Transport struct {
	Sink collector.Sink
	// Check returns an error if counts do not arrive, which says what to do. Open calls it
	// once in the background, and no request waits for it. It may be nil.
	Check func(context.Context) error
	// Dropped returns the sums of the counts that could not be sent, by reason: what is
	// TooLong and SendError in [collector.Dropped], in more words. It may be nil.
	Dropped func() map[string]int64
	// Stats returns the sink's counters. It may be nil.
	Stats func() any
}

// TransportConfig is what a transport is made of.
type TransportConfig struct {
	File     *config.File
	Instance string // the name of this process among the senders
	Key      []byte // signs the counts; nil if they are not signed
	Log      *slog.Logger
}

// transports are those that were registered, by source.
var transports struct {
	sync.Mutex
	open map[string]func(TransportConfig) (Transport, error)
}

// Register makes a transport available for files with this source ("kafka"). A package that
// implements one calls it from init; programs import that package. open must not need what
// the counts are sent to: it may be unavailable. Register panics if the source has a
// transport already.
func Register(source string, open func(TransportConfig) (Transport, error)) {
	transports.Lock()
	defer transports.Unlock()
	if _, twice := transports.open[source]; twice || source == config.SourceStatsD || source == config.SourceGraphite || source == config.SourceNone {
		panic("hotparam: Register was called twice for source " + source)
	}
	if transports.open == nil {
		transports.open = make(map[string]func(TransportConfig) (Transport, error))
	}
	transports.open[source] = open
}

// OpenTransport returns a transport that sends counts the way that the aggregator of the same
// file takes them. Programs that use [Open] need no other; a source that is registered must be
// linked in, as for Open.
func OpenTransport(c TransportConfig) (Transport, error) {
	source := c.File.Aggregator.WithDefaults().Source
	switch source {
	case config.SourceStatsD, config.SourceGraphite:
		return openStatsD(c)
	case config.SourceNone:
		return Transport{}, errors.New("aggregator.source: none: counting is disabled, so there are no counts to send")
	}
	transports.Lock()
	open := transports.open[source]
	transports.Unlock()
	if open == nil {
		return Transport{}, fmt.Errorf("aggregator.source: %s is not linked into this program: add import _ %q", source, "github.com/hotparam/hotparam/transport/"+source)
	}
	return open(c)
}

func openStatsD(c TransportConfig) (Transport, error) {
	s := c.File.StatsD.WithDefaults(c.File.Aggregator)
	spread, err := statsdsink.ParseSpread(s.Spread)
	if err != nil {
		return Transport{}, err
	}
	sink, err := statsdsink.New(statsdsink.Config{
		Rules: c.File.Rules, Addrs: s.Addresses, Spread: spread, Strict: s.Encoding == wire.Strict.String(), NoMeta: !*s.Meta, Instance: c.Instance, Key: c.Key,
	})
	if err != nil {
		return Transport{}, err
	}
	return Transport{Sink: sink}, nil
}
