// Package sdnotify reports the state of a service to systemd: ready, reloading, stopping, alive.
// The protocol of sd_notify(3) is that of go-systemd; the loop of the watchdog is here.
package sdnotify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notifier sends messages to systemd. A nil Notifier sends nothing. Its methods are safe for
// concurrent use.
type Notifier struct {
	watchdog time.Duration // 0 if systemd has no watchdog for the service
}

// New returns the Notifier that the process's environment asks for, or nil if systemd did not
// start it with Type=notify. It returns an error if no one listens at the socket.
func New() (*Notifier, error) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	_ = conn.Close()                               // nothing was written
	watchdog, _ := daemon.SdWatchdogEnabled(false) // 0 for invalid settings
	return &Notifier{watchdog}, nil
}

// Ready reports that the service has started, or has reloaded its files.
func (n *Notifier) Ready(status string) { n.send(daemon.SdNotifyReady, "STATUS="+status) }

// Reloading reports that the service reloads its files. Ready must follow.
func (n *Notifier) Reloading() {
	n.send(daemon.SdNotifyReloading, strings.TrimSuffix(daemon.SdNotifyMonotonicUsec(), "\n"))
}

// Stopping reports that the service is ending in order.
func (n *Notifier) Stopping() { n.send(daemon.SdNotifyStopping, "STATUS=stopping") }

// Watch calls alive regularly until ctx ends, and sends systemd a sign of life with the returned
// status while it returns nil. A call that takes longer than half of the watchdog's time counts
// as failed, as does one that never returns. Watch calls failed with the error of each call that
// failed. Then systemd restarts the process unless a later call succeeds in time. Watch returns
// at once if systemd has no watchdog for the service.
func (n *Notifier) Watch(ctx context.Context, alive func(context.Context) (status string, err error), failed func(error)) {
	if n == nil || n.watchdog == 0 {
		return
	}
	every := n.watchdog / 3 // one check may fail
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		switch status, err := check(ctx, n.watchdog/2, alive); {
		case err == nil:
			n.send(daemon.SdNotifyWatchdog, "STATUS="+status)
		case ctx.Err() == nil:
			failed(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

var errHangs = errors.New("the check does not return")

// check calls alive and returns its results, or errHangs if it takes too long. Its goroutine is
// then left behind: the process hangs, and is about to be ended for it.
func check(ctx context.Context, patience time.Duration, alive func(context.Context) (string, error)) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type probeAnswer struct {
		status string
		err    error
	}
	answers := make(chan probeAnswer, 1)
	go func() {
		status, err := alive(ctx)
		answers <- probeAnswer{status, err}
	}()
	select {
	case a := <-answers:
		return a.status, a.err
	case <-ctx.Done():
		select { // both may be ready
		case a := <-answers:
			return a.status, a.err
		default:
			return "", errHangs
		}
	}
}

// send sends a message. Errors are ignored, since the only reader of the socket is systemd. Like
// sd_notify(3), it waits while systemd reads nothing from its queue.
func (n *Notifier) send(lines ...string) {
	if n == nil {
		return
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", " ")
	}
	_, _ = daemon.SdNotify(false, strings.Join(lines, "\n"))
}
