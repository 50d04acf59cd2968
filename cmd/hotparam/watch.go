package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/live"
	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/rules"
)

func newWatch(s streams) *cobra.Command {
	var w watcher
	var after string
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Print events as they happen: keys that become hot, cool or are controlled",
		Long: `Print one line for each event as it happens: time, kind, rule, key and reason. A key
becomes hot or cools, an operator pins, blocks, allows or releases it, or such a control
ends.

With --json each line is the JSON of the page's /api/v1/events and of the webhook. During
a Redis outage watch waits, and then continues where it stopped.`,
		Example: `  hotparam watch --namespace shop
  hotparam watch --config hotparam.yaml
  hotparam watch --json | jq -r 'select(.type == "hot") | .key'
  hotparam watch --after 1732172445123-0.h0   # what happened since that event, too`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			w.streams = s
			return w.watch(cmd.Context(), after)
		},
	}
	w.register(cmd.Flags())
	cmd.Flags().BoolVar(&w.json, "json", false, "print one JSON object a line, with all that is known")
	cmd.Flags().StringVar(&after, "after", "", "begin after the event with this `id`")
	return cmd
}

func (w *watcher) watch(ctx context.Context, after string) (err error) {
	var client redis.UniversalClient
	if w.source, client, err = w.connect(w.err); err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // the client has only read
	if after != "" && !live.ValidID(after) {
		return usageError(fmt.Errorf("--after %q: want the id of an event, such as 1732172445123-0.h0", after))
	}
	follower, err := live.NewFollower(client, live.Config{Namespace: w.source.namespace, Every: watchEvery}, after)
	if err != nil {
		return err
	}
	return follower.Run(ctx, w.update)
}

// watchEvery is the interval at which the streams are read.
const watchEvery = 500 * time.Millisecond

// watcher prints the events of a follower.
type watcher struct {
	streams
	redisFlags
	source             redisPlace
	json               bool
	begun, unavailable bool
}

func (w *watcher) update(u live.Update) error {
	switch {
	case u.Err != nil:
		w.unavailable = true
		fmt.Fprintln(w.err, printable(fmt.Sprintf("hotparam: cannot read events at %s, trying again: %v", redacted(w.source.redis.URL), u.Err)))
		return nil //nolint:nilerr // the follower retries
	case !w.begun:
		fmt.Fprintf(w.err, "watching namespace %q at %s\n", w.source.namespace, redacted(w.source.redis.URL))
	case w.unavailable:
		fmt.Fprintln(w.err, "hotparam: reading events again")
	}
	w.begun, w.unavailable = true, false
	if u.Missed > 0 {
		fmt.Fprintf(w.err, "hotparam: missed %s, which Redis has not kept\n", hotwords.Plural(int(u.Missed), "change"))
	}
	if u.Lost {
		fmt.Fprintln(w.err, "hotparam: Redis has lost its state, or the events before these: some may be missing")
	}
	enc := newJSON(w.out)
	for i := range u.Events {
		var err error
		if w.json {
			err = enc.Encode(u.Events[i])
		} else {
			_, err = fmt.Fprintln(w.out, eventLine(&u.Events[i]))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eventLine formats an event as one line:
//
//	15:04:05.123  hot      search-terms GET /search?q=phone: 212-230 in 1s, hot at 200/s; limit 50/s
func eventLine(e *live.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-7s  %s %s", e.At.Local().Format("15:04:05.000"), e.Type, e.Rule, e.Key)
	if e.Why != "" {
		b.WriteString(": " + e.Why)
	}
	switch e.Type {
	case live.Hot:
		if e.Limit != "" {
			b.WriteString("; limit " + limitOf(e))
		}
	case live.Pin, live.Block, live.Allow:
		b.WriteString("; until " + e.Until.Local().Format(time.TimeOnly) + ", by " + e.By)
	case live.Release:
		b.WriteString("; by " + e.By)
	}
	return printable(b.String())
}

// limitOf formats a limit with its unit, such as "2MB/s".
func limitOf(e *live.Event) string {
	rate, err := rules.ParseRate(e.Limit)
	if err != nil || e.Counts == nil {
		return e.Limit
	}
	return hotwords.Rate(rate, e.Counts.Unit)
}
