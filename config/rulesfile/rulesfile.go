// Package rulesfile follows the rules file of a process. The file is read again when it changes, and
// when the process asks for it. If a file cannot be used, the rules of the last good one stay in force.
package rulesfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/filewatch"
	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Follower]. Path, Start, Put and Log are required.
type Config struct {
	Path string
	// Data is the contents of the file at the start. If it is nil, the file is read once more.
	Data []byte
	// Start is the file at the start, whose rules are in force.
	Start *config.File
	// Prepare completes a file before its rules are used, or returns an error. A nil Prepare does
	// nothing.
	Prepare func(*config.File) error
	// Put puts the rules of a file in force. If it returns an error, the present ones stay. The file
	// is then refused, unless the error is [context.Canceled]: the process ends.
	Put func(*config.File) error
	// Settings returns the settings of a file that only the start of a process uses, by section. A
	// nil Settings means that there are none.
	Settings func(*config.File) map[string]any
	Log      *slog.Logger
}

// Follower follows a file. It is safe for concurrent use.
type Follower struct {
	Config
	reading sync.Mutex              // held while the file is read, which may block, and used
	tried   []byte                  // contents used last, good or bad; guarded by reading
	onRead  func(file *config.File) // see OnRead

	mu         sync.Mutex   // guards the rest
	latest     *config.File // last good file
	unreadable string       // why the file cannot be read, or ""
	stats      Stats
	lines      loglimit.Limit
}

// New returns a follower. The caller must call Run.
func New(c Config) *Follower {
	r := c.Start.Rules
	return &Follower{
		Config: c, tried: c.Data, latest: c.Start, onRead: func(*config.File) {},
		stats: Stats{Version: r.Version, Rules: len(r.Rules), Loaded: time.Now()},
	}
}

// OnRead sets f, which is called after each reading: with a good file, or with nil. It must be called
// before Run and Reload.
func (f *Follower) OnRead(read func(file *config.File)) { f.onRead = read }

// InForce returns the last good file.
func (f *Follower) InForce() *config.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// Rules returns the rules in force.
func (f *Follower) Rules() *rules.Rules { return f.InForce().Rules }

// Stats returns the present state of the file. It does not wait for a file that is being read.
func (f *Follower) Stats() Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.stats
	s.Problem = cmp.Or(f.unreadable, s.Problem)
	return s
}

// Run reads the file whenever it changes, until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	filewatch.Run(ctx, filewatch.Config{Path: f.Path, Known: f.Data, MaxSize: config.MaxSize, OnChange: f.changed, OnAccess: f.access})
	return nil
}

// changed uses the new contents of the file, unless Reload has used them.
func (f *Follower) changed(data []byte) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if !bytes.Equal(data, f.tried) {
		_ = f.use(data, false) // it is logged
	}
}

// Reload reads the file now. It returns an error if the file cannot be used, which is also logged.
func (f *Follower) Reload() error {
	f.reading.Lock()
	defer f.reading.Unlock()
	data, err := config.Read(f.Path)
	if err != nil {
		f.access(err)
		return err
	}
	return f.use(data, true)
}

// access is called with an error when the file cannot be read, and with nil when it can be read
// again. A problem with its contents remains then: they are used again only if they have changed.
func (f *Follower) access(err error) {
	f.mu.Lock()
	f.unreadable = ""
	if err != nil {
		f.unreadable = err.Error()
		f.stats.Rejected++
	}
	f.mu.Unlock()
	if err != nil {
		f.mayLog().Warn("the file cannot be read: the rules stay as they are", "file", f.Path, "err", err)
	} else {
		f.Log.Info("the file can be read again", "file", f.Path)
	}
	f.onRead(nil)
}

// use puts the rules in data in force, unless they are. The caller holds reading.
func (f *Follower) use(data []byte, asked bool) error {
	before := f.InForce()
	f.tried = data
	next, err := f.parse(data, before)
	isNew := err == nil && (next.Rules.Version != before.Rules.Version || !bytes.Equal(next.Rules.Redact.Key, before.Rules.Redact.Key))
	if isNew {
		err = f.Put(next)
	}
	if errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		f.reject(err)
		return err
	}
	f.mu.Lock()
	wasBad := f.stats.Problem != ""
	f.latest, f.unreadable, f.stats.Problem = next, "", ""
	if isNew {
		f.stats.Reloads++
		f.stats.Version, f.stats.Rules, f.stats.Loaded = next.Rules.Version, len(next.Rules.Rules), time.Now()
	}
	f.mu.Unlock()
	log := f.mayLog()
	if isNew || wasBad || asked {
		log.Info("rules are in force", "rules_version", next.Rules.Version, "rules", len(next.Rules.Rules), "changed", isNew)
		for _, warning := range next.Warnings() {
			log.Warn(warning.Message, "line", warning.Line, "hint", warning.Hint)
		}
	}
	if changed := f.changedSettings(next, f.Start); len(changed) > 0 && len(f.changedSettings(next, before)) > 0 {
		log.Warn("settings of the file have changed since the start: they need a restart", "sections", strings.Join(changed, ","))
	}
	f.onRead(next)
	return nil
}

// parse returns the file in data, complete.
func (f *Follower) parse(data []byte, before *config.File) (*config.File, error) {
	file, err := config.Parse(f.Path, data)
	if err != nil {
		return nil, err
	}
	if was := before.Rules.Namespace; file.Rules.Namespace != was {
		return nil, fmt.Errorf("the namespace is %q now, was %q: another one needs a restart", file.Rules.Namespace, was)
	}
	if f.Prepare != nil {
		err = f.Prepare(file)
	}
	return file, err
}

// reject counts and logs a file that cannot be used. Of several problems it logs the first.
func (f *Follower) reject(err error) {
	problem := err.Error()
	args := []any{"file", f.Path, "rules_version", f.Rules().Version}
	var problems config.Problems
	if errors.As(err, &problems) && len(problems) > 0 {
		first := problems[0]
		problem = fmt.Sprintf("%s:%d: %s", f.Path, first.Line, first.Message)
		args = append(args, "line", first.Line, "err", first.Message, "hint", first.Hint)
		if more := len(problems) - 1; more > 0 {
			args = append(args, "more", more)
		}
	} else {
		args = append(args, "err", err)
	}
	f.mu.Lock()
	f.unreadable, f.stats.Problem = "", problem
	f.stats.Rejected++
	f.mu.Unlock()
	f.mayLog().Error("the rules stay as they are: the file is invalid", args...)
	f.onRead(nil)
}

// lineRate limits the lines about the file: a loop may send SIGHUP or write the file.
var lineRate = loglimit.LineRate{Burst: 10, Every: 10 * time.Second}

// mayLog returns the log, or one that discards its lines if there were too many.
func (f *Follower) mayLog() *slog.Logger {
	if _, ok := f.lines.Allow(lineRate, time.Now()); !ok {
		return slog.New(slog.DiscardHandler)
	}
	return f.Log
}

// changedSettings returns the names of the sections in which two files differ.
func (f *Follower) changedSettings(a, b *config.File) (names []string) {
	if f.Settings == nil {
		return nil
	}
	present, earlier := f.Settings(a), f.Settings(b)
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if !reflect.DeepEqual(present[name], earlier[name]) {
			names = append(names, name)
		}
	}
	return names
}
