// Package sdnotify tells systemd how a service is: ready, reading its files again, stopping,
// alive. It speaks the protocol of sd_notify(3), one datagram for each message.
//
// It is written here because the protocol is all there is to it: a library for it would be a
// module more in every build, and leaves the watchdog's loop to its caller.
package sdnotify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// Notifier sends messages to systemd. A nil Notifier sends nothing. Its methods are safe for
// concurrent use.
type Notifier struct {
	conn     *net.UnixConn
	watchdog time.Duration // 0 means that systemd wants no signs of life
}

// New returns the Notifier that the process's environment asks for, or nil if it was not
// started by systemd with Type=notify.
func New() (*Notifier, error) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@" begins an abstract name
	if err != nil {
		return nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	return &Notifier{conn: conn, watchdog: watchdogInterval()}, nil
}

// watchdogInterval is how often at least systemd wants a sign of life of this process; 0 is
// never.
func watchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || usec <= 0 {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

// Ready says that the service has started, or has read its files again.
func (n *Notifier) Ready(status string) { n.send("READY=1", "STATUS="+status) }

// Reloading says that the service reads its files again. Ready must follow.
func (n *Notifier) Reloading() { n.send("RELOADING=1", monotonic()) }

// Stopping says that the service ends in order.
func (n *Notifier) Stopping() { n.send("STOPPING=1", "STATUS=stopping") }

// Watch gives systemd a sign of life while alive returns nil, with the status that it
// returns, until ctx ends. A check that takes longer than half of systemd's patience counts as
// failed, as does one that never returns. It calls failed with the error of each check that
// failed; after that systemd ends the process, and starts it again, unless a later check
// succeeds in time. It returns at once if systemd wants no signs of life.
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
			n.send("WATCHDOG=1", "STATUS="+status)
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

// check calls alive and returns what it returns, or errHangs if that takes too long. Its
// goroutine is left behind then: the process hangs, and is about to be ended for it.
func check(ctx context.Context, patience time.Duration, alive func(context.Context) (string, error)) (status string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	type answer struct {
		status string
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		status, err := alive(ctx)
		answers <- answer{status, err}
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

// Close ends the connection. No other method may be called after it.
func (n *Notifier) Close() {
	if n != nil {
		_ = n.conn.Close() // only written to, in datagrams
	}
}

// send sends a message. An error is of no use to anybody: whoever reads the socket is systemd.
func (n *Notifier) send(lines ...string) {
	if n == nil {
		return
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", " ")
	}
	_ = n.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = n.conn.Write([]byte(strings.Join(lines, "\n")))
}
