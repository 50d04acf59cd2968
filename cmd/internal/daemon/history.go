package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/aggregator"
	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/rules"
)

// histories are the writers of the history, one for each owner that this process publishes for. A nil
// histories is a configuration without a history. It is safe for concurrent use.
type histories struct {
	store  *history.Store
	config history.Config        // without the owner
	own    redis.UniversalClient // nil if the history is in the aggregator's Redis

	mu      sync.Mutex
	writers map[string]*history.Writer // by owner
	gone    history.Stats              // counters of writers that have ended
}

// newHistories returns the history of the file, or nil if it has none. It makes no call.
func newHistories(c *Config) (*histories, error) {
	conf := c.File.Aggregator.History
	if !conf.On {
		return nil, nil
	}
	h := &histories{writers: make(map[string]*history.Writer)}
	client := c.Redis
	if conf.Redis != (config.Redis{}) {
		conf.Redis.URL = cmp.Or(conf.Redis.URL, c.File.Aggregator.Redis.URL)
		own, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(conf.Redis))
		if err != nil {
			return nil, configError(fmt.Errorf("aggregator.history.redis: %w", err))
		}
		h.own, client = own, own
	}
	var err error
	if h.store, err = history.NewStore(client, c.File.Rules.Namespace); err != nil {
		return nil, configError(err)
	}
	secrets := c.File.Rules.Secrets
	h.config = history.Config{Store: h.store, Keep: conf.Keep, Memory: conf.Memory, Log: c.Log, Hides: func(text string) bool { return looksSecret(&secrets, text) }}
	return h, nil
}

// looksSecret reports whether a key has a parameter whose name looks secret, with a value that is
// neither redacted nor masked. Instances send no such key; other programs may.
func looksSecret(secrets *rules.Secrets, text string) bool {
	for param := range strings.SplitSeq(text[strings.LastIndexByte(text, '?')+1:], "&") {
		name, value, found := strings.Cut(param, "=")
		if !found || strings.HasPrefix(value, "hmac-") || strings.HasPrefix(value, "~") {
			continue
		}
		if _, bare, hasSource := strings.Cut(name, ":"); hasSource {
			name = bare
		}
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if secrets.Hides(name) {
			return true
		}
	}
	return false
}

// writer returns the writer of an owner, which is new.
func (h *histories) writer(owner string, inOffice func() bool) *history.Writer {
	if h == nil {
		return nil
	}
	c := h.config
	c.Owner, c.InOffice = owner, inOffice
	w := history.NewWriter(c)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writers[owner] = w
	return w
}

// run runs a writer until ctx ends. A nil writer ends at once.
func (h *histories) run(ctx context.Context, owner string, w *history.Writer) error {
	if w == nil {
		return nil
	}
	err := w.Run(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	addHistory(&h.gone, w.Stats())
	if h.writers[owner] == w {
		delete(h.writers, owner)
	}
	return err
}

// add adds what the detectors of an owner counted.
func (h *histories) add(owner string, tops []aggregator.Tops) {
	h.mu.Lock()
	w := h.writers[owner]
	h.mu.Unlock()
	if w != nil {
		w.Add(tops)
	}
}

// onTops returns the function that receives what the detectors of an owner count, or nil without a
// history.
func (h *histories) onTops(owner string) func([]aggregator.Tops) {
	if h == nil {
		return nil
	}
	return func(tops []aggregator.Tops) { h.add(owner, tops) }
}

// onPartition is like onTops, for the owners of Kafka's partitions.
func (h *histories) onPartition() func(int32, []aggregator.Tops) {
	if h == nil {
		return nil
	}
	return func(partition int32, tops []aggregator.Tops) { h.add(partitionOwner(partition), tops) }
}

// mark adds a mark to the history of an owner, or of the first one if owner is empty.
func (h *histories) mark(owner string, m history.Mark) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if owner == "" && len(h.writers) > 0 {
		owner = slices.Min(slices.Collect(maps.Keys(h.writers)))
	}
	if w := h.writers[owner]; w != nil {
		w.Mark(m)
	}
}

// addRefused adds to the history of an owner what limits refused of a key.
func (h *histories) addRefused(owner string, key rules.Key, n, from, to int64) {
	h.mu.Lock()
	w := h.writers[owner]
	h.mu.Unlock()
	if w != nil {
		w.Refused(key, n, from, to)
	}
}

// stats returns the sums over all writers. Paused and Failing are those of the first that has any.
func (h *histories) stats() history.Stats {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.gone
	for _, owner := range slices.Sorted(maps.Keys(h.writers)) {
		s := h.writers[owner].Stats()
		addHistory(&all, s)
		all.Writing = all.Writing || s.Writing
		all.Paused, all.Failing = cmp.Or(all.Paused, s.Paused), cmp.Or(all.Failing, s.Failing)
		all.Bytes += s.Bytes
	}
	return all
}

func addHistory(sum *history.Stats, s history.Stats) {
	sum.Panes += s.Panes
	sum.Chunks += s.Chunks
	sum.Failures += s.Failures
	sum.Hidden += s.Hidden
	sum.Dropped.Late += s.Dropped.Late
	sum.Dropped.Paused += s.Dropped.Paused
	sum.Dropped.Redis += s.Dropped.Redis
	sum.Dropped.Unreadable += s.Dropped.Unreadable
	sum.Dropped.Marks += s.Dropped.Marks
}

// words returns why no history is written, for /-/ready, or "".
func (h *histories) words() string {
	if h == nil {
		return ""
	}
	switch s := h.stats(); {
	case s.Paused != "":
		return "; history has stopped: " + s.Paused
	case s.Failing != "":
		return "; history cannot be written: " + s.Failing
	}
	return ""
}

// handler returns the handler of /api/v1/history.
func (h *histories) handler() http.Handler {
	if h == nil {
		return history.NewHandler(nil)
	}
	return history.NewHandler(h.store)
}

// close closes the client of the history, if it has its own.
func (h *histories) close() {
	if h != nil && h.own != nil {
		_ = h.own.Close() // the writers have sent everything
	}
}

func (h *histories) collect(s figure.Samples) { figure.Collect(s, historyMetrics, h.stats()) }

// historyMetrics are the metrics of the history, if there is one.
var historyMetrics = []figure.Figure[history.Stats]{
	figure.Flag("history_writing", "1 if this aggregator writes the history of the keys that it publishes.",
		func(h *history.Stats) bool { return h.Writing && h.Paused == "" && h.Failing == "" }).
		Explain("1 if this aggregator writes the [history](docs/WATCHING.md#history) of the keys that it publishes"),
	figure.Flag("history_paused", "1 if the history has stopped because Redis is nearly full.",
		func(h *history.Stats) bool { return h.Paused != "" }).
		Explain("1 if the history has stopped because Redis uses more than 80% of its `maxmemory`, so that no limit is " +
			"lost. It goes on below 75%. `/-/ready` says so"),
	figure.Flag("history_failing", "1 if the history cannot be written to Redis.",
		func(h *history.Stats) bool { return h.Failing != "" }),
	figure.Counter("history_failures_total", "Times that the history could not be written.",
		func(h *history.Stats) int64 { return h.Failures }),
	figure.Counter("history_seconds_total", "Seconds that were written to the history.",
		func(h *history.Stats) int64 { return h.Panes }),
	figure.Counter("history_chunks_total", "Chunks of the history that were written.",
		func(h *history.Stats) int64 { return h.Chunks }),
	figure.Gauge("history_bytes", "Bytes of the history in Redis, of the keys that this aggregator publishes.",
		func(h *history.Stats) float64 { return float64(h.Bytes) }),
	figure.Counter("history_hidden_total", "Amounts that the history has in the rest of their rule, because their key looks secret or is forgotten.",
		func(h *history.Stats) int64 { return h.Hidden }),
	figure.CountersBy("history_dropped_total", "DATA LOSS: seconds that are not in the history, and marks, by reason.", "reason",
		func(h *history.Stats, emit func(string, int64)) {
			emit("late", h.Dropped.Late)
			emit("paused", h.Dropped.Paused)
			emit("redis", h.Dropped.Redis)
			emit("unreadable", h.Dropped.Unreadable)
			emit("marks", h.Dropped.Marks)
		}).
		Explain("seconds that are not in the history, by reason: `late` (counted after their minute was written); `paused` " +
			"(Redis was nearly full); `redis` (it could not be written for three minutes); `unreadable` (chunks found in " +
			"Redis); and `marks`, of which more than 1,000 waited"),
}
