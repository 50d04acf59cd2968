package hotparam

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9/logging"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/middleware"
)

// Open reads the file at path and starts the parts that it describes: they send counts, and
// follow the hot set and the file. [Hotparam.Reload] puts a changed file in force. If the file is
// bad, the log says why and the rules stay as they are.
//
// Open makes no remote call. If Redis, a broker or the aggregator is unavailable, requests
// are still served. The outage is logged once, and the service is used once it is
// available. So an error concerns the file, a file that it names, or an option. Only the
// values of ctx are used: a server drains requests after its context has ended, and they
// are limited until [Hotparam.Close].
//
// With source: none in the file, Open opens no socket, no key becomes hot, and Redis is used
// only for limits with scope: share, fleet or exact.
//
// Unless [WithRedis] is given, Open turns off the log of package go-redis, which all
// clients of a process share and which has a line for each connection that fails. A
// program that wants it calls redis.SetLogger afterwards.
func Open(ctx context.Context, path string, opts ...Option) (*Hotparam, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	data, err := config.Read(path)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	file, err := config.Parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("hotparam: %w", err)
	}
	h := &Hotparam{path: path, log: o.log, onReload: o.onReload, finished: make(chan struct{})}
	if err := h.build(file, o); err != nil {
		return nil, errors.Join(fmt.Errorf("hotparam: %s: %w", path, err), h.discard(o))
	}
	h.file = h.newRulesFile(file, data)
	h.start(context.WithoutCancel(ctx), file, o)
	return h, nil
}

// build makes the parts and starts none of them.
func (h *Hotparam) build(file *config.File, o *options) (err error) {
	namespace := file.Rules.Namespace
	if h.client = o.redis; h.client == nil {
		logging.Disable()
		if h.client, err = hotkeys.NewClientFrom(hotkeys.ClientConfig(file.Aggregator.WithDefaults().Redis)); err != nil {
			return err
		}
	}
	if h.fleet, err = newFleet(h.client, namespace, o); err != nil {
		return err
	}
	key, err := file.Aggregator.SigningKey()
	if err != nil {
		return err
	}
	if err := file.ReadRedactKey(); err != nil {
		return err
	}
	if file.Aggregator.Source != config.SourceNone {
		if h.transport, err = OpenTransport(TransportConfig{File: file, Instance: o.name, Key: key, Log: o.log}); err != nil {
			return err
		}
		if h.counts, err = collector.New(collector.Config{Sink: h.transport.Sink, Rules: file.Rules, Log: o.log}); err != nil {
			return err
		}
	}
	if h.answers, err = newAnswers(h.client, namespace, h.log); err != nil {
		return err
	}
	guarding := append([]middleware.Option{middleware.WithLog(o.log), middleware.WithSharer(h.answers)}, h.fleet.options()...)
	if h.guard, err = middleware.New(file.Rules, h.counts, append(guarding, o.middleware...)...); err != nil {
		return err
	}
	h.fleet.guard = h.guard
	h.answers.Adopt(file.Rules)
	if h.watcher, err = hotkeys.NewWatcher(h.client, hotkeys.WatcherConfig{Namespace: namespace, Logger: o.log}, h.guard.HotSet()); err != nil {
		return err
	}
	h.watcher.SetHold(file.Aggregator.HoldDuringOutage)
	if h.controls, err = hotkeys.NewControlWatcher(h.client, hotkeys.WatcherConfig{Namespace: namespace, Logger: o.log}, h.guard); err != nil {
		return err
	}
	h.heartbeat, err = h.newHeartbeat(namespace, o)
	return err
}

// discard closes the parts that build has made.
func (h *Hotparam) discard(o *options) (err error) {
	if h.transport.Sink != nil {
		err = h.transport.Sink.Close()
	}
	if o.redis == nil && h.client != nil {
		err = errors.Join(err, h.client.Close())
	}
	return err
}

// start starts the tasks that run until Close.
func (h *Hotparam) start(ctx context.Context, file *config.File, o *options) {
	h.work, h.stop = context.WithCancel(ctx)
	if h.counts != nil {
		h.run(h.counts.Run)
		h.run(h.watcher.Run)
		h.run(h.controls.Run)
		h.run(h.heartbeat.Run)
		h.run(newMismatch(h.client, h.log, h.guard, h.file, o.name).run)
	}
	h.run(h.guard.Run)
	h.run(h.answers.run)
	h.run(h.file.Run)
	if o.signals {
		h.run(h.followSignals())
	}
	if check := h.transport.Check; check != nil {
		h.run(func(ctx context.Context) error {
			if err := check(ctx); err != nil && ctx.Err() == nil {
				h.log.Warn("counts do not arrive", "err", err)
			}
			return nil
		})
	}
	h.mu.Lock()
	h.follow(file)
	h.mu.Unlock()
	go func() {
		h.err = h.tasks.Wait()
		if o.redis == nil {
			h.err = errors.Join(h.err, h.client.Close())
		}
		close(h.finished)
	}()
}
