package kafkasource

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dialer makes the connections to brokers, private ones if there is a
// configuration for that.
//
// An address that refuses is told as one that does not answer in time. The client
// asks another broker then; after a refusal it would give up what it asked, at
// times, and with it the membership of the group, though only one broker is away.
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

// refusal is why no connection came about.
type refusal struct{ error }

// Timeout says that it is worth another try.
func (refusal) Timeout() bool { return true }

func (r refusal) Unwrap() error { return r.error }
