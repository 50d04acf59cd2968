package daemon

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/filewatch"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/internal/status"
	"github.com/hotparam/hotparam/rules"
)

// rulesFile follows the daemon's rules file, which is read again on SIGHUP and when it changes.
// If a file cannot be used, the rules of the last valid one stay in force. It is safe for
// concurrent use.
type rulesFile struct {
	started  *settings                      // the settings at the start of the process
	putRules func(rules *rules.Rules) error // puts rules in force in the pipeline

	mu         sync.Mutex   // guards the fields below; held while rules are put in force
	changed    func()       // called after each reading, under mu; may be nil
	latest     *config.File // last valid file; its rules are in force
	tried      []byte       // contents parsed last, valid or not; nil before the first
	unreadable string       // why the file cannot be read, or ""
	stats      status.RulesFile
	lines      loglimit.Limit
}

func newRulesFile(set *settings, put func(*rules.Rules) error) *rulesFile {
	rules := set.File.Rules
	return &rulesFile{
		started: set, putRules: put, latest: set.File,
		stats: status.RulesFile{Version: rules.Version, Rules: len(rules.Rules), Loaded: time.Now()},
	}
}

// onChange sets f, which is called after each reading of the file, whether accepted or rejected.
// It must not block and must not call methods of r.
func (r *rulesFile) onChange(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = f
}

// announce calls the function set by onChange. The caller holds mu.
func (r *rulesFile) announce() {
	if r.changed != nil {
		r.changed()
	}
}

// rulesVersion returns the version of the rules in force.
func (r *rulesFile) rulesVersion() string { return r.read().Version }

// rules returns the rules in force.
func (r *rulesFile) rules() *rules.Rules {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest.Rules
}

// read returns the current status of the file.
func (r *rulesFile) read() status.RulesFile {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Problem = cmp.Or(r.unreadable, s.Problem)
	return s
}

// watch reads the file again whenever it changes, until ctx ends.
func (r *rulesFile) watch(ctx context.Context) error {
	filewatch.Run(ctx, filewatch.Config{
		Path: r.started.Path, MaxSize: config.MaxSize,
		OnChange: func(data []byte) { r.useRules(data, false) },
		OnAccess: r.access,
	})
	return nil
}

// reload reads the file now.
func (r *rulesFile) reload() {
	data, err := config.Read(r.started.Path)
	if err != nil {
		r.access(err)
		return
	}
	r.useRules(data, true)
}

// access is called with an error when the file cannot be read, and with nil when it can be read
// again. In the second case a problem with the contents remains: the watcher delivers contents
// only if they have changed.
func (r *rulesFile) access(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unreadable = ""
	if err != nil {
		r.unreadable = r.reject(err)
	} else {
		r.started.Log.Info("the file can be read again", "file", r.started.Path)
	}
	r.announce()
}

// useRules puts the rules in data in force and logs the change. Contents that were parsed last are
// ignored, unless asked is set, as for SIGHUP.
func (r *rulesFile) useRules(data []byte, asked bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !asked && bytes.Equal(data, r.tried) {
		return
	}
	r.tried, r.unreadable = data, ""
	defer r.announce()
	next, err := r.parse(data)
	isNew := err == nil && next.Rules.Version != r.stats.Version
	if isNew {
		err = r.putRules(next.Rules)
	}
	if err != nil {
		r.stats.Problem = r.reject(err)
		return
	}
	rules, before, wasBad := next.Rules, r.latest, r.stats.Problem != ""
	r.latest, r.stats.Problem = next, ""
	if isNew {
		r.stats.Reloads++
		r.stats.Version, r.stats.Rules, r.stats.Loaded = rules.Version, len(rules.Rules), time.Now()
	}
	if !r.mayLog() {
		return
	}
	if isNew || wasBad || asked {
		r.started.Log.Info("rules are in force", "rules_version", rules.Version, "rules", len(rules.Rules), "changed", isNew)
		for _, warning := range next.Warnings() {
			r.started.Log.Warn(warning.Message, "line", warning.Line, "hint", warning.Hint)
		}
	}
	if changed := changedSections(next, r.started.File); len(changed) > 0 && len(changedSections(next, before)) > 0 {
		r.started.Log.Warn("settings of the file have changed since the start: they need a restart", "sections", strings.Join(changed, ","))
	}
}

// parse parses the contents of the file and applies the flags and environment variables of the
// process.
func (r *rulesFile) parse(data []byte) (*config.File, error) {
	file, err := config.Parse(r.started.Path, data)
	if err != nil {
		return nil, err
	}
	if was := r.latest.Rules.Namespace; file.Rules.Namespace != was {
		return nil, fmt.Errorf("the namespace is %q now, was %q: another one needs a restart", file.Rules.Namespace, was)
	}
	return file, r.started.Override(file)
}

// reject counts a file that cannot be used. It logs the first problem and the number of further
// ones, and returns the first in words. The caller holds mu.
func (r *rulesFile) reject(err error) (problem string) {
	r.stats.Rejected++
	log := r.started.Log
	if !r.mayLog() {
		log = slog.New(slog.DiscardHandler)
	}
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		log.Error("the rules stay as they are: the file is invalid", "file", r.started.Path, "rules_version", r.stats.Version, "err", err)
		return err.Error()
	}
	first := problems[0]
	args := []any{"file", r.started.Path, "rules_version", r.stats.Version, "line", first.Line, "err", first.Message, "hint", first.Hint}
	if more := len(problems) - 1; more > 0 {
		args = append(args, "more", more)
	}
	log.Error("the rules stay as they are: the file is invalid", args...)
	return fmt.Sprintf("line %d: %s", first.Line, first.Message)
}

// rulesLog limits the lines logged about the file: a loop may send SIGHUP or write the file.
var rulesLog = loglimit.LineRate{Burst: 10, Every: 10 * time.Second}

func (r *rulesFile) mayLog() bool {
	_, ok := r.lines.Allow(rulesLog, time.Now())
	return ok
}

// changedSections returns the sections, other than the rules, in which two files differ.
func changedSections(a, b *config.File) (sections []string) {
	current, previous := a.Aggregator, b.Aggregator
	current.HoldDuringOutage, previous.HoldDuringOutage = 0, 0 // instances apply it without a restart
	for _, x := range []struct {
		name              string
		current, previous any
	}{
		{"aggregator", current, previous}, {"statsd", a.StatsD, b.StatsD},
		{"kafka", a.Kafka, b.Kafka}, {"graphite", a.Graphite, b.Graphite}, {"webhook", a.Webhook, b.Webhook},
	} {
		if !reflect.DeepEqual(x.current, x.previous) {
			sections = append(sections, x.name)
		}
	}
	return sections
}

func (r *rulesFile) collect(s figure.Samples) {
	figure.Collect(s, status.RulesFigures, r.read())
}
