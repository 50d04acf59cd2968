package kafkaclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/kafka"
)

// The wait before a request is retried doubles from firstRetry to lastRetry. That is short, since a
// partition has a new leader within a second.
const (
	firstRetry = 50 * time.Millisecond
	lastRetry  = 250 * time.Millisecond
)

// Options returns the options by which a client reaches a cluster. It reads the files of
// certificates. The password is read here, for an early error, and again for each connection, so
// that it can be changed while the client is used.
func Options(c *kafka.Connection) ([]kgo.Opt, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ClientID),
		kgo.RequestTimeoutOverhead(c.Timeout),
		kgo.RetryBackoffFn(func(failures int) time.Duration { return base.Backoff(failures-1, firstRetry, lastRetry) }),
		kgo.DisableClientMetrics(),
	}
	if c.Version != "" {
		versions := kversion.FromString(c.Version)
		if versions == nil {
			return nil, fmt.Errorf("Connection.Version %q: no such version: want a release of Kafka, as 3.6", c.Version)
		}
		opts = append(opts, kgo.MaxVersions(versions))
	}
	var private *tls.Config
	if c.TLS != nil {
		var err error
		if private, err = c.TLS.Config(); err != nil {
			return nil, err
		}
	}
	opts = append(opts, kgo.Dialer(dialer(c.Timeout, private)))
	if c.SASL != nil {
		if _, err := c.SASL.Secret(); err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism(c.SASL)))
	}
	return opts, nil
}

func mechanism(c *kafka.SASL) sasl.Mechanism {
	if c.Mechanism == kafka.Plain {
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			secret, err := c.Secret()
			return plain.Auth{User: c.User, Pass: secret}, err
		})
	}
	auth := func(context.Context) (scram.Auth, error) {
		secret, err := c.Secret()
		return scram.Auth{User: c.User, Pass: secret}, err
	}
	if c.Mechanism == kafka.SCRAMSHA256 {
		return scram.Sha256(auth)
	}
	return scram.Sha512(auth)
}
