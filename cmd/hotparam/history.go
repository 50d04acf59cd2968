package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/history"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/hotwords"
)

// historyFlags holds the flags of `hotparam history`.
type historyFlags struct {
	redisFlags
	from, to            string
	rule, route, prefix string
	columns             int
	json, csv           bool
}

func newHistory(s streams) *cobra.Command {
	var h historyFlags
	cmd := &cobra.Command{
		Use:   "history [KEY]",
		Short: "Show what was hot, and how much, in the last days",
		Long: `Show what was hot, and how much, in the last days: the keys that counted most, or one
key column by column. Aggregators whose file has aggregator.history write it to Redis.

A time is 14:00 or 14:00:30 (of the last 24 hours), 2026-11-28 14:00, 2026-11-28T14:00:00Z,
now, or before now: -1h, -3d. Counts are those of the columns, not rates. A key has bounds
if it did not count enough to be kept all the time.`,
		Example: `  hotparam history --config hotparam.yaml                        # the last hour
  hotparam history --namespace shop --from 14:00 --to 14:10
  hotparam history --from -3d --rule search                      # one rule
  hotparam history --from 14:00 --to 14:10 'GET /search?q=phone' # one key
  hotparam history --from -1d --csv > day.csv
  hotparam history forget 'q=ann@example.com'                    # delete a value`,
		Args: args("[KEY]"),
		RunE: func(cmd *cobra.Command, args []string) error { return h.show(cmd.Context(), s, args) },
	}
	f := cmd.Flags()
	h.register(f)
	f.StringVar(&h.from, "from", "-1h", "the `time` of the beginning")
	f.StringVar(&h.to, "to", "now", "the `time` of the end")
	f.StringVar(&h.rule, "rule", "", "only this `rule`")
	f.StringVar(&h.route, "route", "", "only keys of this `route`, such as 'GET /search'")
	f.StringVar(&h.prefix, "prefix", "", "only keys whose parameters begin with this `text`, such as q=ph")
	f.IntVar(&h.columns, "columns", 0, "at most `N` columns (default 48 in a table, else 1000)")
	f.BoolVar(&h.json, "json", false, "one JSON object: {from, to, step, rows: [{rule, route, key, unit, cells: [[column, low, high, refused], …]}], rest, marks, gaps, left_out}")
	f.BoolVar(&h.csv, "csv", false, "one line for each key and column: time, rule, route, key, unit, low, high, refused")
	cmd.AddCommand(newForget(s))
	return cmd
}

// historyTimeout bounds the read of a history.
const historyTimeout = 10 * time.Second

// tableColumns is the number of columns of a table.
const tableColumns = 48

func (h *historyFlags) show(ctx context.Context, s streams, args []string) error {
	q, err := h.query(args, time.Now())
	if err != nil {
		return usageError(err)
	}
	place, store, client, err := h.open(s)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the client has only read
	ctx, cancel := context.WithTimeout(ctx, historyTimeout)
	defer cancel()
	view, err := store.Read(ctx, q)
	switch {
	case errors.Is(err, history.ErrNone):
		return fmt.Errorf("namespace %q at %s: %w", place.namespace, redacted(place.redis.URL), err)
	case err != nil:
		return place.explain(err, historyUser)
	case h.json:
		_, err = s.out.Write(append(view.AppendJSON(nil), '\n'))
		return err
	case h.csv:
		return historyCSV(s.out, view)
	}
	if len(view.Rows) == 0 {
		fmt.Fprintf(s.err, "no key in namespace %q at %s in this time\n", place.namespace, redacted(place.redis.URL))
	}
	if q.Key != "" {
		return historyOfKey(s.out, view)
	}
	return historyTable(s.out, view)
}

// query returns what the flags and arguments select.
func (h *historyFlags) query(args []string, now time.Time) (q history.Query, err error) {
	q = history.Query{Rule: h.rule, Route: h.route, Prefix: h.prefix, Columns: h.columns}
	if h.json && h.csv {
		return q, errors.New("--json and --csv: choose one")
	}
	if q.Columns == 0 && !h.json && !h.csv {
		q.Columns = tableColumns
	}
	if len(args) > 0 {
		q.Key = args[0]
	}
	if q.From, err = parseMoment(h.from, now); err != nil {
		return q, fmt.Errorf("--from %w", err)
	}
	if q.To, err = parseMoment(h.to, now); err != nil {
		return q, fmt.Errorf("--to %w", err)
	}
	return q, q.Check()
}

// open returns the history that the flags name, and its client, which the caller closes.
func (h *redisFlags) open(s streams) (redisPlace, *history.Store, redis.UniversalClient, error) {
	place, err := h.place(s.err)
	if err != nil {
		return place, nil, nil, err
	}
	if h.redis == "" {
		place = place.ofHistory()
	}
	client, err := place.client()
	if err != nil {
		return place, nil, nil, err
	}
	store, err := history.NewStore(client, place.namespace)
	return place, store, client, err
}

// ofHistory returns the place of the history, if the file names another Redis for it.
func (p redisPlace) ofHistory() redisPlace {
	if p.file != nil && p.file.Aggregator.History.Redis != (config.Redis{}) {
		url := p.redis.URL
		p.redis = p.file.Aggregator.History.Redis
		p.redis.URL = cmp.Or(p.redis.URL, url)
	}
	return p
}

// momentForms are the forms of a time, the local ones first.
var momentForms = []string{"15:04", time.TimeOnly, "2006-01-02 15:04", time.DateTime, "2006-01-02T15:04", "2006-01-02T15:04:05", time.DateOnly, time.RFC3339}

// parseMoment reads a time: a clock's time within the last 24 hours, a date, "now", or "-1h".
func parseMoment(text string, now time.Time) (time.Time, error) {
	text = strings.TrimSpace(text)
	if text == "now" {
		return now, nil
	}
	if strings.HasPrefix(text, "-") {
		d, err := base.ParseDuration(text)
		if err != nil {
			return now, fmt.Errorf("%q: %w", text, err)
		}
		return now.Add(d), nil
	}
	for _, form := range momentForms {
		t, err := time.ParseInLocation(form, text, now.Location())
		if err != nil {
			continue
		}
		if t.Year() == 0 { // a clock's time
			t = time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), t.Second(), 0, now.Location())
			if t.After(now) {
				t = t.AddDate(0, 0, -1)
			}
		}
		return t, nil
	}
	return now, fmt.Errorf("%q: want a time, such as 14:00, 2026-11-28 14:00, -1h or now", text)
}

func newForget(s streams) *cobra.Command {
	var f redisFlags
	cmd := &cobra.Command{
		Use:   "forget KEY",
		Short: "Delete a key or a value from the history, for good",
		Long: `Delete a key from the history: from all chunks in Redis, and from the memory of the
aggregators that write. KEY is the whole text of a key, or a parameter, such as
q=ann@example.com, which deletes all keys that have it. The command returns when no
chunk has it, and all aggregators in office have confirmed.

The key is not kept again for 31 days: Redis keeps a hash of it for that time. Marks of
the key are deleted, too. What Redis has elsewhere (hot keys, the stream of changes,
which is kept for a day) and logs are not changed.`,
		Example: `  hotparam history forget --config hotparam.yaml 'GET /search?q=phone'
  hotparam history forget --namespace shop 'q=ann%40example.com'`,
		Args: args("KEY"),
		RunE: func(cmd *cobra.Command, args []string) error { return forget(cmd.Context(), s, f, args[0]) },
	}
	f.register(cmd.Flags())
	return cmd
}

// forgetTimeout bounds the deletion of a key.
const forgetTimeout = time.Minute

func forget(ctx context.Context, s streams, f redisFlags, key string) error {
	place, store, client, err := f.open(s)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // every write was confirmed
	ctx, cancel := context.WithTimeout(ctx, forgetTimeout)
	defer cancel()
	done, err := store.Forget(ctx, key, history.MaxSpan)
	if err != nil && !errors.Is(err, history.ErrWriters) {
		return place.explain(err, writerUser)
	}
	fmt.Fprintf(s.err, "%s deleted from %s of the history of namespace %q; confirmed by %s. It is not kept again for %d days\n",
		hotwords.Plural(done.Removed, "series and mark"), hotwords.Plural(done.Chunks, "chunk"), place.namespace, hotwords.Plural(done.Writers, "writer"), int(history.MaxSpan.Hours()/24))
	return err
}
