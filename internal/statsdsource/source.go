package statsdsource

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/baseline"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Source]. Rules and Publisher are required. Package config has checked the
// values of a file.
type Config struct {
	Rules     *rules.Rules
	Publisher aggregator.Publisher
	// Listen are the addresses to listen at, in the syntax of [wire.ParseAddress]. If there are
	// none, the source listens at [DefaultListen].
	Listen []string
	// Readers is the number of sockets and goroutines that read each UDP address, at most
	// [MaxReaders]. Zero means 1. With more than one, the kernel spreads the senders over them
	// by SO_REUSEPORT, which needs Linux.
	Readers int
	// Encoding is the encoding of the senders' keys.
	Encoding wire.Encoding
	// Canonical is passed to the decoders as [decode.Decoder.Canonical].
	Canonical bool
	// Memory is the size in bytes of the windows of all shards and the accounts of keys. Zero
	// means [aggregator.DefaultMemory].
	Memory int64
	// Shards is the number of goroutines that share the keys. Zero means one for each processor,
	// at most 8.
	Shards int
	// Days is the baseline for jumps over days. A nil Days compares with the recent past.
	Days *baseline.Days
	// OnTops is passed to the detectors as [aggregator.DetectorConfig.OnTops].
	OnTops func([]aggregator.Tops)
	// Trust decides which packets are accepted. A nil Trust accepts all.
	Trust *decode.Trust
	// Snapshots keeps the source's state over a restart. With nil Snapshots the counts from
	// before the start are unknown.
	Snapshots Snapshots
	// Log logs instances whose clocks are off, and whether a snapshot was used. A nil Log
	// disables it.
	Log *slog.Logger
}

// Source listens for StatsD lines and publishes the hot keys.
type Source struct {
	listener *listener
	decoders []*decode.Decoder // decoders by reader
	shards   *aggregator.Shards
	feeds    []aggregator.Feed // feeds by reader

	publisher aggregator.Publisher
	clocks    *decode.ClockLog
	log       *slog.Logger
	started   time.Time

	snapshots     Snapshots
	snapshotStats snapshotStats

	reloading sync.Mutex // guards the fields below
	rules     *decode.Numbered
	resumed   bool // the snapshot of the previous process was used, or cannot be
}

// New returns a source with open sockets, so that packets queue from now on. [Source.Run] reads
// them and closes the sockets.
func New(ctx context.Context, c Config) (*Source, error) {
	if len(c.Listen) == 0 {
		c.Listen = []string{DefaultListen}
	}
	c.Readers = cmp.Or(c.Readers, 1)
	c.Memory = cmp.Or(c.Memory, aggregator.DefaultMemory)
	c.Shards = cmp.Or(c.Shards, min(8, runtime.GOMAXPROCS(0)))
	listener, err := listenStatsD(ctx, c.Listen, c.Readers)
	if err != nil {
		return nil, err
	}
	s := &Source{rules: decode.NumberRules(c.Rules), listener: listener, publisher: c.Publisher, clocks: decode.NewClockLog(c.Log), log: c.Log, started: time.Now(), snapshots: c.Snapshots}
	readers := len(listener.readers())
	windows, accounts := aggregator.SplitMemory(c.Memory)
	for i := range readers {
		s.decoders = append(s.decoders, decode.NewDecoder(c.Rules, c.Encoding))
		if i == 0 {
			s.decoders[0].Believe(c.Trust)
			s.decoders[0].LimitAccounts(accounts)
		} else {
			s.decoders[i].ShareSenders(s.decoders[0])
		}
		s.decoders[i].Canonical = c.Canonical
	}
	s.shards = aggregator.NewShards(aggregator.DetectorConfig{Rules: c.Rules, Publisher: c.Publisher, Memory: windows, Lag: decode.DefaultLag, Start: s.started, Days: c.Days, OnTops: c.OnTops}, c.Shards, readers)
	for i := range readers {
		s.feeds = append(s.feeds, s.shards.Feed(i))
	}
	return s, nil
}

// Addr returns the first address that the source listens at.
func (s *Source) Addr() net.Addr { return s.listener.addrs[0] }

// Addrs returns all addresses, in the order of Config.Listen.
func (s *Source) Addrs() []net.Addr { return slices.Clone(s.listener.addrs) }

// Run reads until ctx ends. Then it counts the packets that have arrived, closes the sockets and
// returns.
func (s *Source) Run(ctx context.Context) error {
	var shards, telling sync.WaitGroup
	shards.Go(s.shards.Run)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	telling.Go(func() { s.tellInstances(reading) })
	if s.snapshots != nil {
		telling.Go(func() { s.saveSnapshots(reading) })
	}
	err := s.listener.run(ctx, s.decoders, s.feeds)
	stop()
	telling.Wait()
	s.shards.Close()
	shards.Wait()
	return errors.Join(err, s.listener.close())
}

// tellInstances publishes the live instances, and logs those whose clocks are off, each second
// until ctx ends.
func (s *Source) tellInstances(ctx context.Context) {
	tell := func() {
		now := time.Now()
		live := s.decoders[0].Instances(now)
		s.publisher.Instances(live)
		s.clocks.Log(now, live, s.decoders[0].Clocks(now))
	}
	tell()
	for range base.Ticks(ctx, instancesEvery) {
		tell()
	}
}

// Stats are the counters and state of a source. Those of the shards are at most a second old.
type Stats struct {
	Listener ListenerStats
	Decoder  decode.Stats
	Detector aggregator.DetectorStats
	Snapshot SnapshotStats
}

// Stats returns the counters and the state. It is safe for concurrent use.
func (s *Source) Stats() Stats {
	all := Stats{Listener: base.LoadCounters[ListenerStats](s.listener.stats), Detector: s.shards.Stats(), Snapshot: base.LoadCounters[SnapshotStats](&s.snapshotStats)}
	for _, d := range s.decoders {
		stats := d.Stats()
		all.Decoder.Merge(&stats)
	}
	return all
}
