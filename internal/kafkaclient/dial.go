package kafkaclient

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dialer returns a function that connects to brokers, by TLS if private is not nil.
//
// It reports a refused connection as a timeout, so that the client asks another broker. On a
// refusal the client sometimes gives up the request, and with it the membership of the group,
// though only one broker is unavailable.
func dialer(timeout time.Duration, private *tls.Config) func(ctx context.Context, network, addr string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout}
	dial := plain.DialContext
	if private != nil {
		dial = (&tls.Dialer{NetDialer: plain, Config: private}).DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		var failed *net.OpError
		if errors.As(err, &failed) && failed.Op == "dial" {
			again := *failed
			again.Err = refusal{failed.Err}
			return nil, &again
		}
		return conn, err
	}
}

// refusal is the error of a connection that could not be made.
type refusal struct{ error }

// Timeout reports true, so that the client tries again.
func (refusal) Timeout() bool { return true }

func (r refusal) Unwrap() error { return r.error }
