package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/live"
)

func newTop(s streams) *cobra.Command {
	var f redisFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch what is hot on a live screen, and act on it",
		Long: `Show the hot keys of a namespace on a live screen, each with its line over the last
minutes. Enter shows all that is known of a key: its threshold, bounds and limit, and the
routes, instances and callers of its requests. p, b and a pin, block and allow it for some
time, and r ends that, after a confirmation; the user of Redis needs the rights of
hotparam-operator for it. ? lists all keys.`,
		Example: `  hotparam top --namespace shop
  hotparam top --config hotparam.yaml
  hotparam top --redis redis://hotparam-operator@10.0.0.5:6379/0 --namespace shop`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return top(cmd.Context(), s, f)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

func top(ctx context.Context, s streams, f redisFlags) error {
	place, err := f.place(s.err)
	if err != nil {
		return err
	}
	if !terminal(s.out) {
		return usageError(errors.New("top needs a terminal: hotparam list and hotparam watch do without"))
	}
	client, err := place.client()
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all calls have ended
	view, err := live.NewView(client, live.Config{Namespace: place.namespace})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	operate := operator{client: client, namespace: place.namespace, claimed: claimedUser(), done: view.Now}
	model := newTopModel(place.namespace, redacted(place.redis.URL), operate.run)
	program := tea.NewProgram(model,
		tea.WithInput(s.in), tea.WithOutput(s.out), tea.WithEnvironment(os.Environ()),
		tea.WithContext(ctx), tea.WithoutSignalHandler(), // ctx is what a signal ends
		tea.WithFPS(topFPS),
	)
	var parts sync.WaitGroup
	parts.Go(func() { _ = view.Run(ctx) })
	parts.Go(func() { sendSnapshots(ctx, view, program.Send) })
	_, err = program.Run()
	interrupted := ctx.Err() != nil
	cancel()
	parts.Wait()
	if interrupted && errors.Is(err, tea.ErrProgramKilled) {
		return nil
	}
	return err
}

// topFPS bounds how often the screen is written, however many updates come.
const topFPS = 15

// snapshotTaken tells the screen of a newer state.
type snapshotTaken struct{ *live.Snapshot }

// sendSnapshots passes each newer snapshot to the screen until ctx ends. While the screen is
// busy it skips those between.
func sendSnapshots(ctx context.Context, view *live.View, send func(tea.Msg)) {
	for {
		changed := view.Changed()
		send(snapshotTaken{view.Snapshot()})
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// operator sets and releases controls.
type operator struct {
	client             redis.UniversalClient
	namespace, claimed string
	done               func() // called after a change
}

// order is what a person asks for on the screen. An empty action is a release.
type order struct {
	key    hotparam.Key
	action hotparam.ControlAction
	length time.Duration
	why    string
}

// orderDone is the answer to an order.
type orderDone struct {
	words string
	err   error
}

// run carries out an order, within the time of a listing.
func (o operator) run(what order) orderDone {
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	if what.action == "" {
		c, err := hotkeys.ReleaseControl(ctx, o.client, o.namespace, what.key, what.why, o.claimed)
		if err != nil {
			return orderDone{err: operatorError(err)}
		}
		o.done()
		return orderDone{words: fmt.Sprintf("released %s: the %s is over", what.key, c.Action)}
	}
	c, err := hotkeys.SetControl(ctx, o.client, o.namespace, hotkeys.ControlOrder{Key: what.key, Action: what.action, For: what.length, Why: what.why, Claimed: o.claimed})
	if err != nil {
		return orderDone{err: operatorError(err)}
	}
	o.done()
	return orderDone{words: fmt.Sprintf("%s %s until %s", what.action, what.key, c.Until.Local().Format(time.TimeOnly))}
}

// operatorError says what to do about a missing right.
func operatorError(err error) error {
	if hotkeys.IsDenied(err) {
		return errors.New("Redis refuses it to this user: name one with the rights of hotparam-operator in --redis (docs/REDIS.md)")
	}
	return err
}
