package follow

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/cmd/internal/replay"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/config/rulesfile"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/decode"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a [Follower]. Path and Logs are required.
type Config struct {
	// Path is the file with the rules and the transport, which is followed as well.
	Path string
	// Logs are the paths of the logs. A single "-" means Stdin.
	Logs  []string
	Stdin io.Reader
	// Format and Fields describe the lines; see [accesslog.Options].
	Format accesslog.Format
	Fields *accesslog.Fields
	// FromStart also counts what the logs already hold, as far back as a window reaches.
	FromStart bool
	// Instance is the name of this sender; see [hotparam.WithName].
	Instance string
	Log      *slog.Logger // nil disables logging
}

// Follower counts the requests of logs.
type Follower struct {
	config    Config
	log       *slog.Logger
	rules     *rules.Rules // rules at the start
	file      *rulesfile.Follower
	values    []string
	transport hotparam.Transport
	counts    *collector.Collector
	requests  requests
	slots     slots
	tails     []*tail
	isStream  bool // standard input is followed
	stats     counters
}

// New reads the file and opens the logs. It makes no remote call. The error is a
// config.Problems if the file is bad.
func New(c Config) (*Follower, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Instance = cmp.Or(c.Instance, collector.DefaultInstance())
	if len(c.Logs) == 0 {
		return nil, errors.New("follow: no log is named")
	}
	if slices.Contains(c.Logs, "-") && len(c.Logs) > 1 {
		return nil, errors.New("follow: standard input (-) cannot be combined with files")
	}
	f := &Follower{config: c, log: c.Log}
	data, err := config.Read(c.Path)
	if err != nil {
		return nil, err
	}
	file, err := config.Parse(c.Path, data)
	if err != nil {
		return nil, err
	}
	if err := f.build(file); err != nil {
		if f.transport.Sink != nil {
			err = errors.Join(err, f.transport.Sink.Close())
		}
		return nil, err
	}
	f.file = rulesfile.New(rulesfile.Config{
		Path: c.Path, Data: data, Start: file, Prepare: (*config.File).ReadRedactKey, Put: f.putInForce, Log: f.log,
	})
	return f, nil
}

// Rules returns the state of the rules. It is safe for concurrent use.
func (f *Follower) Rules() rulesfile.Stats { return f.file.Stats() }

// Reload reads the file again and puts its rules in force. If it cannot use them, it logs why
// and keeps the present rules. Changes of the file are also noticed without a call of Reload. It
// is safe for concurrent use.
func (f *Follower) Reload() { _ = f.file.Reload() }

// putInForce puts the rules of a file in force while requests are counted.
func (f *Follower) putInForce(file *config.File) error {
	if err := f.requests.guard.Reload(file.Rules); err != nil {
		return err
	}
	f.slots.life.Store(int64(lifeOf(file.Rules)))
	for _, value := range replay.Values(file.Rules) {
		if !slices.Contains(f.values, value) {
			f.log.Warn("a rule names a field that is not read from the logs until this process restarts", "name", value)
		}
	}
	return nil
}

func (f *Follower) build(file *config.File) (err error) {
	if err := file.ReadRedactKey(); err != nil {
		return err
	}
	f.rules = file.Rules
	key, err := file.Aggregator.SigningKey()
	if err != nil {
		return err
	}
	f.transport, err = hotparam.OpenTransport(hotparam.TransportConfig{File: file, Instance: f.config.Instance, Key: key, Log: f.log})
	if err != nil {
		return err
	}
	// A collector without a budget holds nothing back, so that counts can have any time.
	if f.counts, err = collector.New(collector.Config{Sink: f.transport.Sink, Rules: f.rules, Budget: -1, Log: f.log}); err != nil {
		return err
	}
	if f.requests.guard, err = f.newGuard(); err != nil {
		return err
	}
	f.values = replay.Values(f.rules)
	f.requests.values, f.requests.clean = replay.NewLogValues(f.rules), cleansPaths(file)
	f.slots.send, f.slots.end = f.count, f.counts.FlushAt
	f.slots.old, f.slots.new = func(n int64) { f.stats.Old.Add(n) }, func(n int64) { f.stats.Future.Add(n) }
	f.slots.life.Store(int64(lifeOf(f.rules)))
	return f.openLogs()
}

func (f *Follower) count(e *accesslog.Entry) {
	f.stats.Requests.Add(1)
	f.requests.count(e)
}

// lifeOf returns the age up to which a count can matter.
func lifeOf(rules *rules.Rules) time.Duration {
	return decode.Lookback(rules) + decode.DefaultLag + decode.DefaultGrace
}

// newGuard returns the guard that makes the keys. The requests have already been served, so it
// refuses none and never calls Redis.
func (f *Follower) newGuard() (*middleware.Guard, error) {
	opts, err := replay.InMemory(nil)
	if err != nil {
		return nil, err
	}
	none := func(context.Context, string) string { return "" }
	opts = append(opts, middleware.WithShadow(), middleware.WithoutLocal(), middleware.WithParams(none), middleware.WithLog(f.log))
	return middleware.New(f.rules, f.counts, opts...)
}

func (f *Follower) openLogs() error {
	options := accesslog.Options{Format: f.config.Format, Fields: f.config.Fields, Values: f.values}
	if _, err := accesslog.NewLineDecoder(options); err != nil {
		return err
	}
	f.isStream = f.config.Logs[0] == "-"
	now := time.Now()
	for _, path := range f.config.Logs {
		t := &tail{path: path, options: options, log: f.log, stats: &f.stats}
		if f.isStream {
			t.path = "standard input"
		} else if err := t.openLog(now, f.config.FromStart); err != nil {
			return err
		}
		f.tails = append(f.tails, t)
	}
	return nil
}

// Close closes what New has opened. It is for a follower whose Run is never called.
func (f *Follower) Close() error {
	for _, t := range f.tails {
		for _, file := range t.files {
			_ = file.os.Close() // only read, so nothing can be lost
		}
		t.files = nil
	}
	return f.counts.Close()
}

// Run follows the logs until ctx ends, or standard input does. It then sends the remaining
// counts and returns the error of sending them, if any.
func (f *Follower) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		_ = f.file.Run(watching) // it has no error
	}()
	defer func() {
		stop()
		<-watched
	}()
	if f.isStream {
		f.followStream(ctx)
	} else {
		f.followFiles(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, t := range f.tails {
		t.close(f.slots.add)
	}
	f.slots.flush(last, time.Now()) // send the rest
	return f.counts.Close()
}

func (f *Follower) followFiles(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	room := make([]byte, readAtOnce)
	ticker := time.NewTicker(base.FlushInterval)
	defer ticker.Stop()
	for {
		ended := ctx.Err() != nil // lines written before the end are still read
		now, more := time.Now(), false
		for _, t := range f.tails {
			if t.poll(room, now, f.slots.add) {
				more = true
			}
			if len(f.slots.all) > maxHeld {
				f.slots.flush(sending, now)
			}
		}
		f.recordState(now)
		if ended {
			return
		}
		f.slots.flush(ctx, now)
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Check returns an error that says what to do if counts do not arrive.
func (f *Follower) Check(ctx context.Context) error {
	if f.transport.Check == nil {
		return nil
	}
	return f.transport.Check(ctx)
}
