package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/status"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/statsdsource"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

var statsdWay = source{
	open: newStatsDPipeline,
	read: func(f *config.File) string {
		a := f.Aggregator.WithDefaults()
		words := "StatsD " + strings.Join(a.Listen, ", ") + trustWords(a)
		if a.Readers > 1 {
			words += fmt.Sprintf(" by %d readers", a.Readers)
		}
		if e := f.StatsD.WithDefaults(a).Encoding; e != wire.Plain.String() {
			words += ", keys " + e
		}
		return words
	},
	sent: sentByStatsD,
}

// statsdPipeline is the pipeline of the built-in StatsD listener. It has one publisher.
type statsdPipeline struct {
	owner
	agg *statsdsource.Source
}

func newStatsDPipeline(ctx context.Context, set *settings) (pipeline, error) {
	p := new(statsdPipeline)
	o, err := newOwner(set, func(hot []published.Hot) { p.agg.Inherit(hot) })
	if err != nil {
		return nil, err
	}
	trust, err := set.trust()
	if err != nil {
		return nil, err
	}
	conf := set.File.Aggregator
	p.owner = o
	kept := statsdsource.Snapshots(snapshots{o.publisher.Publisher})
	if conf.SnapshotFile != "" {
		if _, err := os.Stat(filepath.Dir(conf.SnapshotFile)); err != nil {
			return nil, configError(fmt.Errorf("aggregator.snapshot_file: %w", err))
		}
		kept = fileSnapshots{conf.SnapshotFile, o.publisher.Publisher}
	}
	p.agg, err = statsdsource.New(ctx, statsdsource.Config{
		Rules: set.File.Rules, Publisher: o.publisher, Listen: conf.Listen, Readers: conf.Readers, Encoding: set.Encoding, Canonical: conf.Canonical, Memory: conf.Memory,
		Days: set.days, OnTops: set.history.onTops(o.name), Trust: trust, Log: set.Log, Snapshots: kept,
	})
	if err != nil {
		return nil, status.WithAnotherAddress(err, "--listen, HOTPARAM_LISTEN or aggregator.listen")
	}
	return p, nil
}

// Run implements pipeline.
func (p *statsdPipeline) Run(ctx context.Context) error {
	return p.run(ctx, func(ctx context.Context) error {
		err := p.agg.Run(ctx)
		p.log.Info("aggregator has drained", "counts", p.agg.Stats().Decoder.Counts)
		return err
	})
}

func (p *statsdPipeline) reload(rules *rules.Rules) error {
	p.agg.Reload(rules)
	p.owner.reload(rules)
	return nil
}

func (p *statsdPipeline) ready() (string, error) {
	words, err := p.owner.ready()
	if err != nil {
		return "", err
	}
	stats := p.agg.Stats()
	return words + clockWords(&stats.Decoder) + lateWords(&stats.Decoder) + refusedWords(&stats.Decoder), nil
}

func (p *statsdPipeline) collect(s figure.Samples) {
	stats := p.agg.Stats()
	figure.Collect(s, statsdDecoderMetrics, stats.Decoder)
	figure.Collect(s, statsdMetrics, stats)
	figure.Collect(s, detectorMetrics, stats.Detector)
	figure.Collect(s, costMetrics, stats.Detector)
	figure.Collect(s, publisherMetrics, p.publisher.Stats())
}

func (p *statsdPipeline) where() slog.Attr {
	var addresses []string
	for _, a := range p.agg.Addrs() {
		addresses = append(addresses, wire.Address{Network: a.Network(), Addr: a.String()}.String())
	}
	return slog.String("statsd", strings.Join(addresses, ","))
}

// reportTo implements pipeline.
func (p *statsdPipeline) reportTo(m *published.Member) {
	stats := p.agg.Stats()
	m.Dropped = stats.Listener.Dropped + stats.Listener.TooLong + stats.Listener.Truncated + refusedSum(&stats.Decoder)
	m.Lost, m.Arrived = lostSum(&stats.Decoder), stats.Decoder.Packets
	m.Waiting = int64(p.publisher.Stats().Waiting)
	reportDetector(m, &stats.Detector)
}
