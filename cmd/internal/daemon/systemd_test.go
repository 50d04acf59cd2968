package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/sdnotify"
	"github.com/hotparam/hotparam/internal/testenv"
)

// stuckPipeline reports that it is ready, and does no work.
type stuckPipeline struct{ pipeline }

func (stuckPipeline) ready() (string, error) { return "ready", nil }
func (stuckPipeline) alive() error           { return errors.New("nothing is counted") }

// A daemon that answers but does not work is not alive, and its log says why it is restarted.
func TestStuckPipelineGivesNoSignOfLife(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "30000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	systemd, err := sdnotify.New()
	if err != nil {
		t.Fatal(err)
	}
	var log testenv.LogBuffer
	stop := testenv.Running(t, func(ctx context.Context) error {
		return reportService(ctx, systemd, stuckPipeline{}, conn.LocalAddr(), slog.New(slog.NewTextHandler(&log, nil)))
	})
	testenv.Eventually(t, "the log tells it", func() bool { return strings.Contains(log.String(), "nothing is counted") }, &log)
	stop()
	buffer := make([]byte, 4096)
	for _, want := range []string{"READY=1\nSTATUS=ready", "STOPPING=1\nSTATUS=stopping"} {
		n, err := conn.Read(buffer)
		if err != nil || string(buffer[:n]) != want {
			t.Errorf("%q, %v, want %q", buffer[:n], err, want)
		}
	}
}
