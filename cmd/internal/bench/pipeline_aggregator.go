package bench

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/kafkasource"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/internal/statsdsource"
)

// aggregatorTotal is the aggregator's current total and the processor time spent on it.
type aggregatorTotal struct {
	Counted int64 // sum of all counts in windows
	CPU     time.Duration
}

// tally requests a tally from the aggregator.
func (p *partProcess) tally() (t aggregatorTotal, err error) {
	if err := p.send("tally"); err != nil {
		return t, err
	}
	return t, p.receive(&t)
}

// pipelineSource is the aggregator's end of a transport.
type pipelineSource struct {
	// ready waits until everything sent will be counted. It returns the address to send to, if
	// the transport has one.
	ready func(ctx context.Context) (string, error)
	// counted returns the sum of all counts in windows.
	counted func() int64
	// loops are the functions to run.
	loops []func(context.Context) error
}

// runAggregator answers with the address to send to when it is ready, and then answers
// each request with a tally. When its input ends it answers with the lags of the probes that it
// saw.
func runAggregator(ctx context.Context, l *link, c partConfig) (err error) {
	client, err := hotkeys.NewClient(c.Redis)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	seen := new(probes)
	var source *pipelineSource
	if c.Transport == TransportKafka {
		source = c.kafkaSource(client, seen)
	} else {
		source, err = c.statsdSource(ctx, client, seen)
	}
	if err != nil {
		return err
	}
	return serve(ctx, func() error {
		addr, err := source.ready(ctx)
		if err != nil {
			return err
		}
		if err := l.send(addr); err != nil {
			return err
		}
		for {
			var what string
			if ok, err := l.receive(&what); err != nil {
				return err
			} else if !ok {
				return l.send(seen.sorted())
			}
			cpu, err := cpuTime()
			if err != nil {
				return err
			}
			if err := l.send(aggregatorTotal{Counted: source.counted(), CPU: cpu}); err != nil {
				return err
			}
		}
	}, source.loops...)
}

// probes records the lags of probes when they become hot, which they do as soon as they are
// counted. It is safe for concurrent use.
type probes struct {
	mu   sync.Mutex
	lags []int64 // ns, from the count to the window
}

// sorted returns the lags of all probes.
func (p *probes) sorted() []int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.lags))
}

func (p *probes) recordLags(hot []published.Hot) {
	now := monotonic()
	for i := range hot {
		if sent, ok := probeTime(hot[i].Key); ok {
			p.mu.Lock()
			p.lags = append(p.lags, now-sent)
			p.mu.Unlock()
		}
	}
}

// probed is a publisher that records probes and does not publish them. It serves a whole source,
// or one partition of Kafka.
type probed struct {
	kafkasource.PartitionPublisher
	probes *probes
}

// Publish implements [aggregator.Publisher].
func (p *probed) Publish(change published.Change) {
	p.probes.recordLags(change.Hot)
	if change = (published.Change{Hot: others(change.Hot), Cool: others(change.Cool)}); !change.Empty() {
		p.PartitionPublisher.Publish(change)
	}
}

// Refresh implements [aggregator.Publisher].
func (p *probed) Refresh(part int, hot []published.Hot) {
	p.PartitionPublisher.Refresh(part, others(hot))
}

// others returns the keys that are not probes.
func others(hot []published.Hot) []published.Hot {
	return slices.DeleteFunc(slices.Clone(hot), func(h published.Hot) bool { return h.Rule == ruleProbe })
}

// statsdSource returns the aggregator over UDP.
func (c *partConfig) statsdSource(ctx context.Context, client redis.UniversalClient, seen *probes) (*pipelineSource, error) {
	publisher, err := hotkeys.NewPublisher(client, hotkeys.PublisherConfig{Namespace: c.Namespace})
	if err != nil {
		return nil, err
	}
	source, err := statsdsource.New(ctx, statsdsource.Config{
		Rules: c.rules(true), Publisher: &probed{publisher, seen}, Listen: []string{"127.0.0.1:0"},
	})
	if err != nil {
		return nil, err
	}
	return &pipelineSource{
		ready: func(context.Context) (string, error) { return source.Addr().String(), nil },
		counted: func() int64 {
			s := source.Stats()
			return s.Decoder.Sum - s.Detector.Late
		},
		loops: []func(context.Context) error{source.Run, publisher.Run},
	}, nil
}
