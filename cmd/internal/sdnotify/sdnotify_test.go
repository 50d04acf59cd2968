package sdnotify

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// systemd listens as systemd does. received returns the messages.
func systemd(t *testing.T, path string) (received func() string) {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return func() string {
		t.Helper()
		buffer := make([]byte, 4096)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
}

func newNotifier(t *testing.T) *Notifier {
	t.Helper()
	n, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestMessages(t *testing.T) {
	for _, path := range []string{filepath.Join(t.TempDir(), "notify"), "@hotparam-test-" + strconv.Itoa(os.Getpid())} {
		received := systemd(t, path)
		n := newNotifier(t)
		n.Ready("ready,\nas it were")
		if got := received(); got != "READY=1\nSTATUS=ready, as it were" {
			t.Errorf("ready: %q", got)
		}
		n.Reloading()
		if got := received(); !regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=[1-9]\d+$`).MatchString(got) {
			t.Errorf("reloading: %q", got)
		}
		n.Stopping()
		if got := received(); !strings.HasPrefix(got, "STOPPING=1\n") {
			t.Errorf("stopping: %q", got)
		}
	}
}

func TestWithoutSystemd(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	n := newNotifier(t)
	if n != nil {
		t.Fatal("there is a notifier")
	}
	n.Ready("")
	n.Reloading()
	n.Stopping()
	n.Watch(t.Context(), nil, nil)
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	if _, err := New(); err == nil {
		t.Error("a socket that is not there was opened")
	}
}

// Watchdog messages are sent while the check succeeds, and neither when it fails nor when it
// hangs.
func TestWatch(t *testing.T) {
	received := systemd(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", "60000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := newNotifier(t)
	var checks atomic.Int64
	hang := make(chan struct{})
	defer close(hang)
	failures := make(chan error, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Watch(ctx, func(context.Context) (string, error) {
			switch n := checks.Add(1); n {
			case 1, 4:
				return "check " + strconv.FormatInt(n, 10), nil
			case 2:
				return "", errors.New("no progress")
			case 3:
				<-hang
			}
			<-ctx.Done()
			return "", nil
		}, func(err error) { failures <- err })
	}()
	for _, want := range []string{"check 1", "check 4"} {
		if got := received(); got != "WATCHDOG=1\nSTATUS="+want {
			t.Errorf("%q, want the status %q", got, want)
		}
	}
	if first, second := <-failures, <-failures; first.Error() != "no progress" || !errors.Is(second, errHangs) {
		t.Errorf("failures %v, %v", first, second)
	}
	cancel()
	<-done
}

// Another process's watchdog is not ours.
func TestWatchdogOfAnother(t *testing.T) {
	systemd(t, filepath.Join(t.TempDir(), "notify"))
	t.Setenv("WATCHDOG_USEC", "60000")
	t.Setenv("WATCHDOG_PID", "1")
	newNotifier(t).Watch(t.Context(), nil, nil) // returns
}
