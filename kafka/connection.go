// Package kafka holds the settings to reach a Kafka cluster, which the sink that writes counts
// and the source that reads them have in common. It imports no client.
package kafka

import (
	"cmp"
	"time"
)

// Defaults of a [Connection].
const (
	defaultClientID = "hotparam"
	defaultTimeout  = 5 * time.Second
)

// Connection describes how to reach a cluster. Only Brokers is required.
type Connection struct {
	// Brokers are host:port addresses of some brokers, which report the others.
	Brokers []string
	// ClientID names this program in the brokers' logs and quotas. Empty means
	// "hotparam".
	ClientID string
	// Version is the oldest release of any broker, such as "3.6": no newer protocol is used.
	// Empty means as new as the brokers support, or the client's default.
	Version string
	// TLS is nil for connections in the clear.
	TLS *TLS
	// SASL is nil for connections without a login.
	SASL *SASL
	// Timeout bounds the time to connect, and each request. Zero means five seconds.
	Timeout time.Duration
}

// WithDefaults returns the connection with its defaults filled in.
func (c Connection) WithDefaults() Connection {
	c.ClientID = cmp.Or(c.ClientID, defaultClientID)
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	return c
}

// TLS holds the certificates that secure a connection.
type TLS struct {
	// CA is a PEM file of the authorities that sign the brokers' certificates.
	// Empty means the system's.
	CA string
	// Cert and Key are PEM files of our own certificate, for brokers that ask for one (mTLS). Set
	// both or none.
	Cert, Key string
	// ServerName is the name in the brokers' certificates, if it differs from their host.
	ServerName string
	// Insecure accepts any certificate. It is for trials.
	Insecure bool
}

// Mechanisms of SASL, by their registered names.
const (
	Plain       = "PLAIN" // sends the password unprotected, so use it with TLS
	SCRAMSHA256 = "SCRAM-SHA-256"
	SCRAMSHA512 = "SCRAM-SHA-512"
)

// SASL is the login at the brokers.
type SASL struct {
	// Mechanism is [Plain], [SCRAMSHA256] or [SCRAMSHA512].
	Mechanism string
	User      string
	// Exactly one of these is set: a file with the password, whose last newline is ignored, an
	// environment variable with it, or the password itself.
	PasswordFile, PasswordEnv, Password string
}
