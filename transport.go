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

// Transport sends counts out of the process.
type Transport struct {
	Sink collector.Sink
	// Check returns an error that says what to do if counts do not arrive. Open calls it once
	// in the background, and no request waits for it. It may be nil.
	Check func(context.Context) error
	// Dropped returns the sums of the counts that could not be sent, by reason. It splits
	// TooLong and SendError of [collector.Dropped] into finer reasons. It may be nil.
	Dropped func() map[string]int64
	// Stats returns the sink's counters. It may be nil.
	Stats func() any
}

// TransportConfig are the settings of a transport.
type TransportConfig struct {
	File     *config.File
	Instance string // the name of this process among the senders
	Key      []byte // signs the counts; nil if they are not signed
	Log      *slog.Logger
}

// transports are the registered transports, by source.
var transports struct {
	sync.Mutex
	open map[string]func(TransportConfig) (Transport, error)
}

// Register makes a transport available for files with this source ("kafka"). A package that
// implements one calls it from init; programs import that package. open must succeed even if
// the receiver of the counts is unavailable. Register panics if the source already has a
// transport.
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

// OpenTransport returns a transport that sends counts in the way that the aggregator of the
// same file receives them. Programs that use [Open] do not need it. A registered source must
// be linked in, as for Open.
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
	sink, err := statsdsink.New(statsdsink.Config{
		Rules: c.File.Rules, Addrs: s.Addresses, Spread: s.Spread, Strict: s.Encoding == wire.Strict.String(), NoMeta: !*s.Meta, Instance: c.Instance, Key: c.Key,
	})
	if err != nil {
		return Transport{}, err
	}
	return Transport{Sink: sink}, nil
}
