package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/cmd/internal/live"
)

// Config configures [Run].
type Config struct {
	Namespace string
	// Redis is the address of Redis, for messages.
	Redis string
	// Claimed is the claimed name of the operator. It is recorded with each order.
	Claimed string
	// In and Out are the terminal.
	In  io.Reader
	Out io.Writer
	// Explain turns an error of Redis into one that says what to do. A nil Explain shows the
	// error as it is.
	Explain func(error) error
}

// Run shows the screen until ctx ends or a person quits. It returns an error if the terminal
// cannot be used; an outage of Redis is shown on the screen. The caller closes client afterwards.
func Run(ctx context.Context, client redis.UniversalClient, cfg Config) error {
	view, err := live.NewView(client, live.Config{Namespace: cfg.Namespace})
	if err != nil {
		return fmt.Errorf("top: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	operator := operator{client: client, namespace: cfg.Namespace, claimed: cfg.Claimed, explain: cfg.Explain, done: view.Now}
	program := tea.NewProgram(newModel(cfg.Namespace, cfg.Redis, operator.run),
		tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithEnvironment(os.Environ()),
		tea.WithContext(ctx), tea.WithoutSignalHandler(), // a signal ends ctx
		tea.WithFPS(framesPerSecond),
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

// framesPerSecond bounds the frame rate, however frequent the updates are.
const framesPerSecond = 30

// snapshotTaken is the message with a newer snapshot.
type snapshotTaken struct {
	*live.Snapshot
	events []live.Event // the newest events, the oldest first
}

// states is the part of [live.View] that the screen uses.
type states interface {
	Snapshot() *live.Snapshot
	Changed() <-chan struct{}
	Recent(n int) []live.Event
}

// recentEvents is the number of events shown while no key is hot.
const recentEvents = 10

// sendSnapshots sends each newer snapshot to the screen until ctx ends. While the screen is busy
// it skips intermediate ones.
func sendSnapshots(ctx context.Context, view states, send func(tea.Msg)) {
	for {
		changed := view.Changed()
		send(snapshotTaken{view.Snapshot(), view.Recent(recentEvents)})
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
