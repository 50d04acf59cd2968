package hotparam

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/rules"
)

// rulesState is the state of the file and its rules.
type rulesState struct {
	inForce   *rules.Rules
	started   settings // settings in the file that Open read
	latest    settings // settings in the last good file
	tried     []byte   // the contents that were read last, good or bad
	readError string   // reason why the file cannot be read; "" if it can
	stats     RulesStats
}

func newRulesState(file *config.File, data []byte) rulesState {
	s := settingsOf(file)
	return rulesState{inForce: file.Rules, started: s, latest: s, tried: data, stats: RulesStats{Version: file.Rules.Version, RedactKey: keyID(file.Rules)}}
}

// currentStats returns the counters and the present problem of the file.
func (r *rulesState) currentStats() RulesStats {
	s := r.stats
	s.Problem = cmp.Or(r.readError, s.Problem)
	return s
}

// settings are the parts of a file that only Open uses.
type settings struct {
	Source, KeyFile, KeyEnv string
	Redis                   config.Redis
	StatsD                  config.StatsD
	Kafka                   config.Kafka
}

func settingsOf(file *config.File) settings {
	a := file.Aggregator.WithDefaults()
	return settings{a.Source, a.KeyFile, a.KeyEnv, a.Redis, file.StatsD.WithDefaults(a), file.Kafka.WithDefaults()}
}

// keyID returns the id of the key that redacts values.
func keyID(ruleset *rules.Rules) string {
	redaction, err := rules.NewRedaction(ruleset.Redact)
	if err != nil { // impossible, since the guard has made the same redaction
		return ""
	}
	return redaction.KeyID()
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
	h.reading.Lock()
	defer h.reading.Unlock()
	data, err := config.Read(h.path)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		return h.reject(fmt.Errorf("hotparam: %w", err))
	}
	return h.putInForce(data)
}

// putInForce puts the rules of a file in force: first in the guard, which may reject them, then in
// the parts that cannot fail. The caller holds mu.
func (h *Hotparam) putInForce(data []byte) error {
	if h.closed {
		return ErrClosed
	}
	h.rules.tried = data
	file, err := config.Parse(h.path, data)
	if err != nil {
		return h.reject(fmt.Errorf("hotparam: %w", err))
	}
	if err := file.ReadRedactKey(); err != nil {
		return h.reject(fmt.Errorf("hotparam: %s: %w", h.path, err))
	}
	if err := h.guard.Reload(file.Rules); err != nil {
		return h.reject(fmt.Errorf("hotparam: %s: %w", h.path, err))
	}
	h.answers.Adopt(file.Rules)
	h.assume(file.Instances)
	h.followFleet(file.Rules)
	h.followInvalidations(file.Rules)
	h.watcher.SetHold(file.Aggregator.HoldDuringOutage)
	h.rules.inForce = file.Rules
	h.rules.stats.Version, h.rules.stats.RedactKey, h.rules.stats.Problem = file.Rules.Version, keyID(file.Rules), ""
	h.rules.stats.Reloads++
	h.heartbeat.Now()
	h.log.Info("rules are in force", "version", file.Rules.Version)
	was := h.rules.latest
	h.rules.latest = settingsOf(file)
	if !reflect.DeepEqual(h.rules.latest, was) && !reflect.DeepEqual(h.rules.latest, h.rules.started) {
		h.log.Warn("the file has other addresses or credentials than when the process started: they are used from its next start on", "file", h.path)
	}
	if h.onReload != nil {
		h.onReload(file)
	}
	return nil
}

// reject records why the file was not put in force, and returns err.
func (h *Hotparam) reject(err error) error {
	h.rules.stats.Rejected++
	h.rules.stats.Problem = err.Error()
	return err
}

// fileChanged is called with the new contents of the file.
func (h *Hotparam) fileChanged(data []byte) {
	h.reading.Lock()
	defer h.reading.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if bytes.Equal(data, h.rules.tried) {
		return // Reload has read it already, and put it in force or rejected it
	}
	h.logRejection(h.putInForce(data))
}

// fileAccess is called with an error when the file cannot be read, and with nil when it can
// be read again.
func (h *Hotparam) fileAccess(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rules.readError = ""
	if err != nil {
		h.rules.readError = err.Error()
		h.log.Warn("the file cannot be read: the rules stay as they are", "err", err)
		return
	}
	h.log.Info("the file can be read again", "file", h.path)
}

func (h *Hotparam) logRejection(err error) {
	if err != nil && !errors.Is(err, ErrClosed) {
		h.log.Error("the rules stay as they are", "err", err)
	}
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
				h.logRejection(h.Reload())
			}
		}
	}
}
