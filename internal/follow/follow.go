package follow

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/aggregator/decode"
	"github.com/hotparam/hotparam/attach"
	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/internal/filewatch"
	"github.com/hotparam/hotparam/internal/pace"
	"github.com/hotparam/hotparam/internal/replay"
	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/limiter/semaphore"
	"github.com/hotparam/hotparam/middleware"
)

// Config configures a [Follower]. Path and Logs are required.
type Config struct {
	// Path is the file with the rules and the transport, which is followed as well.
	Path string
	// Logs are the paths of the logs. One "-" alone is Stdin.
	Logs  []string
	Stdin io.Reader
	// Format and Fields say how lines are written; see [accesslog.Options].
	Format accesslog.Format
	Fields *accesslog.Fields
	// FromStart has what the logs already hold counted too, as far as a window reaches back.
	FromStart bool
	// Instance is the name of this sender; see [attach.WithName].
	Instance string
	Log      *slog.Logger // nil: nothing is logged
}

// Follower counts the requests of logs.
type Follower struct {
	config    Config
	log       *slog.Logger
	rules     *hotparam.Rules
	data      []byte // of the file with the rules
	values    []string
	transport attach.Transport
	counts    *collector.Collector
	requests  requests
	slots     slots
	tails     []*tail
	stream    *stream // nil if files are followed
	reloads   chan []byte
	stats     counters
}

// New reads the file and opens the logs. It makes no remote call. The error is a
// config.Problems if the file is bad.
func New(c Config) (*Follower, error) {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Instance == "" {
		c.Instance = collector.DefaultInstance()
	}
	if len(c.Logs) == 0 {
		return nil, errors.New("follow: no log is named")
	}
	if slices.Contains(c.Logs, "-") && len(c.Logs) > 1 {
		return nil, errors.New("follow: standard input (-) is followed alone")
	}
	f := &Follower{config: c, log: c.Log, reloads: make(chan []byte, 1)}
	var err error
	if f.data, err = config.Read(c.Path); err != nil {
		return nil, err
	}
	file, err := config.Parse(c.Path, f.data)
	if err != nil {
		return nil, err
	}
	if err := f.build(file); err != nil {
		if f.transport.Sink != nil {
			err = errors.Join(err, f.transport.Sink.Close())
		}
		return nil, err
	}
	return f, nil
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
	f.transport, err = attach.OpenTransport(attach.TransportConfig{File: file, Instance: f.config.Instance, Key: key, Log: f.log})
	if err != nil {
		return err
	}
	// Without a budget nothing is held back, so that counts can be of any time.
	if f.counts, err = collector.New(collector.Config{Sink: f.transport.Sink, Rules: f.rules, Budget: -1, Log: f.log}); err != nil {
		return err
	}
	if f.requests.guard, err = f.newGuard(); err != nil {
		return err
	}
	f.values = replay.Values(f.rules)
	f.requests.values, f.requests.clean = replay.NewLogValues(f.rules), cleansPaths(file)
	f.slots = slots{
		send: f.requests.count, end: f.counts.FlushAt, life: lifeOf(f.rules),
		old: func(n int64) { f.stats.old.Add(n) }, new: func(n int64) { f.stats.future.Add(n) },
	}
	return f.openLogs()
}

// lifeOf returns how old a count can be and still be of use.
func lifeOf(rules *hotparam.Rules) time.Duration {
	return decode.Lookback(rules) + decode.DefaultLag + decode.DefaultGrace
}

// newGuard returns the guard that makes the keys. The requests have been served already, so it
// refuses nothing and never calls Redis.
func (f *Follower) newGuard() (*middleware.Guard, error) {
	all, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		return nil, err
	}
	turns, err := semaphore.New(semaphore.Config{})
	if err != nil {
		return nil, err
	}
	none := func(context.Context, string) string { return "" }
	return middleware.New(f.rules, f.counts, middleware.WithShadow(), middleware.WithoutLocal(), middleware.WithoutWaiting(),
		middleware.WithBackend(all), middleware.WithSemaphore(turns), middleware.WithParams(none), middleware.WithLog(f.log))
}

func (f *Follower) openLogs() error {
	options := accesslog.Options{Format: f.config.Format, Fields: f.config.Fields, Values: f.values}
	if _, err := accesslog.NewLineDecoder(options); err != nil {
		return err
	}
	if f.config.Logs[0] == "-" {
		f.stream = newStream(f.config.Stdin)
	}
	now := time.Now()
	for _, path := range f.config.Logs {
		t := &tail{path: path, options: options, log: f.log, stats: &f.stats}
		if f.stream != nil {
			t.path = "standard input"
		} else if err := t.begin(now, f.config.FromStart); err != nil {
			return err
		}
		f.tails = append(f.tails, t)
	}
	return nil
}

// Run follows the logs until ctx ends, or standard input does. Then it sends what is left, and
// returns the error of that.
func (f *Follower) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		filewatch.Run(watching, filewatch.Config{Path: f.config.Path, Known: f.data, MaxSize: config.MaxSize, OnChange: f.changed})
	}()
	defer func() {
		stop()
		<-watched
	}()
	if f.stream != nil {
		f.followStream(ctx)
	} else {
		f.followFiles(ctx)
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	for _, t := range f.tails {
		t.close(f.slots.add)
	}
	f.slots.flush(last, time.Now()) // the rest
	return f.counts.Close()
}

func (f *Follower) followFiles(ctx context.Context) {
	sending := context.WithoutCancel(ctx)
	room := make([]byte, readAtOnce)
	ticker := time.NewTicker(pace.Flush)
	defer ticker.Stop()
	for {
		ended := ctx.Err() != nil // what was written before is read
		now, more := time.Now(), false
		for _, t := range f.tails {
			if t.poll(room, now, f.slots.add) {
				more = true
			}
			if len(f.slots.all) > maxHeld {
				f.slots.flush(sending, now)
			}
		}
		if ended {
			return
		}
		f.slots.flush(ctx, now)
		f.reload()
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// changed is called with the new contents of the file, by another goroutine.
func (f *Follower) changed(data []byte) {
	select {
	case <-f.reloads: // one that is not in force yet
	default:
	}
	f.reloads <- data
}

// reload puts a changed file in force: its rules.
func (f *Follower) reload() {
	var data []byte
	select {
	case data = <-f.reloads:
	default:
		return
	}
	file, err := config.Parse(f.config.Path, data)
	if err == nil {
		err = file.ReadRedactKey()
	}
	if err == nil {
		err = f.requests.guard.Reload(file.Rules)
	}
	if err != nil {
		f.log.Error("the rules stay as they are", "err", err)
		return
	}
	f.slots.life = lifeOf(file.Rules)
	for _, value := range replay.Values(file.Rules) {
		if !slices.Contains(f.values, value) {
			f.log.Warn("a rule names what is not read of the logs until this process is started again", "name", value)
		}
	}
	f.log.Info("rules are in force", "version", file.Rules.Version)
}

// Check returns an error if counts do not arrive, and what to do.
func (f *Follower) Check(ctx context.Context) error {
	if f.transport.Check == nil {
		return nil
	}
	return f.transport.Check(ctx)
}
