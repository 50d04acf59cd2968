package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/collector/statsdsink"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// partConfig is the configuration that the parts of a fleet share: its instances and its aggregator.
type partConfig struct {
	Transport string
	Redis     string // URL
	Namespace string
	StatsD    string // address
	Brokers   []string
	Topic     string

	Threshold int  // of [Enforce]
	Slow      bool // whether urgent flushes are disabled
	Rate      int  // of [Pipeline]: events per second, over all instances
}

func (c *partConfig) rules(probes bool) *rules.Rules {
	if c.Threshold > 0 {
		return c.enforceRules()
	}
	return c.pipelineRules(probes)
}

// enforceRules returns rules with a limit far below the threshold, and with a hold so short that the
// hot set does not grow with the samples.
func (c *partConfig) enforceRules() *rules.Rules {
	hot := rules.NewThreshold(rules.Rate{N: int64(c.Threshold), Per: time.Second})
	hot.Hold = time.Second
	return searchRules(c.Namespace, hot, &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 1, Per: time.Second}, Burst: 1}, Mode: rules.ModeLimit})
}

// instanceConfig is the configuration of an instance, which has a number below Of.
type instanceConfig struct {
	partConfig
	Number, Of int
}

func (c *instanceConfig) name() string { return fmt.Sprintf("bench-%d", c.Number+1) }

// apiInstance is an instance of an API without the API itself.
type apiInstance struct {
	guard   *middleware.Guard
	counts  *collector.Collector
	client  redis.UniversalClient
	watcher *hotkeys.Watcher
}

func (c *instanceConfig) newInstance(opts ...middleware.Option) (*apiInstance, error) {
	rules := c.rules(false)
	sink, err := c.sink(rules)
	if err != nil {
		return nil, err
	}
	counting := collector.Config{Sink: sink, Rules: rules}
	if c.Slow {
		counting.Urgent = -1
	}
	in := new(apiInstance)
	if in.counts, err = collector.New(counting); err != nil {
		return nil, err
	}
	if in.guard, err = middleware.New(rules, in.counts, opts...); err != nil {
		return nil, err
	}
	if in.client, err = hotkeys.NewClient(c.Redis); err != nil {
		return nil, err
	}
	in.watcher, err = hotkeys.NewWatcher(in.client, hotkeys.WatcherConfig{Namespace: c.Namespace}, in.guard.HotSet())
	return in, err
}

// sink returns the instance's end of the transport.
func (c *instanceConfig) sink(rules *rules.Rules) (collector.Sink, error) {
	if c.Transport == TransportKafka {
		return c.kafkaSink(rules)
	}
	return statsdsink.New(statsdsink.Config{Rules: rules, Addrs: []string{c.StatsD}, Instance: c.name()})
}

// serve answers once the instance follows the hot set. It then counts and follows until talk returns.
func (in *apiInstance) serve(ctx context.Context, l *link, talk func(context.Context) error) error {
	err := serve(ctx, func() error {
		for deadline := time.Now().Add(10 * time.Second); !in.watcher.Stats().Connected; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				return fmt.Errorf("not connected to Redis after 10s: %+v", in.watcher.Stats())
			}
		}
		if err := l.send(true); err != nil {
			return err
		}
		return talk(ctx)
	}, in.counts.Run, in.watcher.Run)
	return errors.Join(err, in.client.Close())
}

// serve runs the loops until talk returns, and then waits for them to end. It returns the error of
// talk and the first error of the loops.
func serve(ctx context.Context, talk func() error, loops ...func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	for _, run := range loops {
		group.Go(func() error { return run(ctx) })
	}
	err := talk()
	stop()
	return errors.Join(err, group.Wait())
}
