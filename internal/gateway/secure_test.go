package gateway

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hotparam/hotparam/internal/testenv"
)

// Peers that go away before TLS is agreed on are not counted: those that check whether a port
// is open do so.
func TestDisagreed(t *testing.T) {
	var counters ConnCounters[atomic.Int64]
	log := new(testenv.Log)
	a := Admission{Counters: &counters, Log: slog.New(slog.NewTextHandler(log, nil))}
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}
	for _, err := range []error{
		io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, &net.OpError{Op: "read", Err: net.ErrClosed},
	} {
		a.Disagreed(from, err)
	}
	if got := counters.NoTLS.Load(); got != 0 || log.String() != "" {
		t.Errorf("%d connections are counted; the log:\n%s", got, log)
	}
	a.Disagreed(from, errors.New("tls: client didn't provide a certificate"))
	a.Disagreed(from, tls.AlertError(42))
	if got := counters.NoTLS.Load(); got != 2 {
		t.Errorf("%d connections are counted, want 2", got)
	}
}
