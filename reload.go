package hotparam

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
)

// newRulesFile returns the follower of the file that Open has read.
func (h *Hotparam) newRulesFile(file *config.File, data []byte) *rulesfile.Follower {
	f := rulesfile.New(rulesfile.Config{
		Path: h.path, Data: data, Start: file, Prepare: (*config.File).ReadRedactKey, Put: h.putInForce, Settings: settingsOf, Log: h.log,
	})
	f.OnRead(func(file *config.File) {
		h.heartbeat.Now()
		if file != nil && h.onReload != nil {
			h.onReload(file)
		}
	})
	return f
}

// settingsOf returns the settings of a file that only Open uses.
func settingsOf(file *config.File) map[string]any {
	a := file.Aggregator.WithDefaults()
	return map[string]any{
		"aggregator": config.Aggregator{Source: a.Source, KeyFile: a.KeyFile, KeyEnv: a.KeyEnv, Redis: a.Redis},
		"statsd":     file.StatsD.WithDefaults(a), "kafka": file.Kafka.WithDefaults(),
	}
}

// ErrClosed is returned by [Hotparam.Reload] after [Hotparam.Close].
var ErrClosed = errors.New("hotparam: closed")

// Reload reads the file again and puts its rules in force while requests are served. Rules may
// be added, removed and changed in any way, and the used part of limits stays used; see
// [middleware.Guard.Reload]. The namespace cannot change. If Reload returns an error, the
// present rules stay in force. Settings other than rules, such as the addresses of Redis and
// aggregators, are used by Open only; if they have changed, the log says so.
//
// Programs need not call it when the file changes: a change is noticed within about half a
// second.
func (h *Hotparam) Reload() error {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	if closed {
		return ErrClosed
	}
	switch err := h.file.Reload(); {
	case errors.Is(err, context.Canceled):
		return ErrClosed
	case err != nil:
		return fmt.Errorf("hotparam: %w", err)
	}
	return nil
}

// putInForce puts the rules of a file in force: first in the guard, which may reject them, then in
// the parts that cannot fail. After Close it returns [context.Canceled].
func (h *Hotparam) putInForce(file *config.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return context.Canceled
	}
	if err := h.guard.Reload(file.Rules); err != nil {
		return err
	}
	h.answers.Adopt(file.Rules)
	h.watcher.SetHold(file.Aggregator.HoldDuringOutage)
	h.follow(file)
	return nil
}

// follow starts and ends what limits and answers of the file need of other instances. The caller
// holds mu, and h is not closed.
func (h *Hotparam) follow(file *config.File) {
	h.fleet.assume(file.Instances)
	h.fleet.follow(h.work, h.run, file.Rules)
	h.answers.follow(h.run, file.Rules)
}

// followSignals returns a task that reads the file again on SIGHUP. From now on the signal
// no longer ends the process.
func (h *Hotparam) followSignals() func(context.Context) error {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	return func(ctx context.Context) error {
		defer signal.Stop(hangups)
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hangups:
				_ = h.Reload() // it is logged
			}
		}
	}
}
