package main

import (
	"context"
	"log/slog"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/hotkeys"
)

// statsdPipeline is our own StatsD listener, with one publisher.
type statsdPipeline struct {
	agg       *aggregator.Aggregator
	publisher *hotkeys.Publisher
	log       *slog.Logger
}

func newStatsDPipeline(ctx context.Context, set *settings, client redis.UniversalClient) (*statsdPipeline, error) {
	rules, conf := set.file.Rules, set.file.Aggregator
	owner := hotkeys.PublisherConfig{Namespace: rules.Namespace, Logger: set.log}
	if conf.Name != "" {
		owner.Owner = "statsd-" + conf.Name
	}
	if conf.Lease {
		owner.Lease = hotkeys.DefaultLease
	}
	publisher, err := hotkeys.NewPublisher(client, owner)
	if err != nil {
		return nil, err
	}
	agg, err := aggregator.New(ctx, aggregator.Config{
		Rules: rules, Publisher: publisher, Listen: conf.Listen, Encoding: set.encoding, Memory: conf.Memory,
	})
	if err != nil {
		return nil, err
	}
	return &statsdPipeline{agg, publisher, set.log}, nil
}

// Run implements pipeline.
func (p *statsdPipeline) Run(ctx context.Context) error {
	publishing, published := context.WithCancel(context.WithoutCancel(ctx))
	defer published()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer published()
		err := p.agg.Run(ctx)
		p.log.Info("aggregator has drained", "counts", p.agg.Stats().Decoder.Counts)
		return err
	})
	group.Go(func() error { return p.publisher.Run(publishing) })
	return group.Wait()
}

func (p *statsdPipeline) ready() (string, error) {
	switch stats := p.publisher.Stats(); {
	case stats.Fenced:
		return "", errFenced
	case !stats.Connected:
		return "", errNoRedis
	case stats.Standby:
		return "standby: another aggregator publishes, this one takes over when it dies", nil
	}
	return "ready", nil
}

func (p *statsdPipeline) collect(s samples) {
	stats := p.agg.Stats()
	statsdDescs.collect(s, &stats.Decoder)
	s.detector(&stats.Detector)
	s.publisher(p.publisher.Stats())
}

func (p *statsdPipeline) where() slog.Attr {
	return slog.String("statsd", p.agg.Addr().String())
}
