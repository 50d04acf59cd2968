package kafkasource

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
)

// dialer returns a function that connects to brokers, by TLS if there is a configuration for
// it.
//
// It reports an address that refuses as one that does not answer in time. The client then
// asks another broker. After a refusal it would sometimes give up the request, and with it
// the membership of the group, though only one broker is away.
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
