package kafkaclient

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Whether an error is tried again is the client's decision. This test pins that it retries a
// refusal.
func TestRefusalIsTriedAgain(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	dial := dialer(time.Second, nil)
	conn, err := dial(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	listener.Close()
	_, err = dial(t.Context(), "tcp", addr)
	var failed *net.OpError
	if !errors.As(err, &failed) || failed.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v: want the refusal", err)
	}
	if !kgo.IsRetryableBrokerErr(err) {
		t.Errorf("%v: the client does not try again", err)
	}
	if _, plain := net.Dial("tcp", addr); plain == nil || plain.Error() != err.Error() {
		t.Errorf("%q, want %q", err, plain)
	}
}
