package kafkaclient

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
)

// IsOneOf reports whether err is one of kinds.
func IsOneOf(err error, kinds ...*kerr.Error) bool {
	return slices.ContainsFunc(kinds, func(kind *kerr.Error) bool { return errors.Is(err, kind) })
}

// Explain adds a hint to an error, if there is one for its kind.
func Explain(err error) error {
	if hint := Hint(err); hint != "" {
		return fmt.Errorf("%w: %s", err, hint)
	}
	return err
}

// isAlert reports whether err is a TLS alert from the other side. crypto/tls exports no type
// for it.
func isAlert(err error) bool {
	var remote *net.OpError
	return errors.As(err, &remote) && remote.Op == "remote error"
}

// Hint returns advice about an error, or "".
func Hint(err error) string {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case IsOneOf(err, kerr.SaslAuthenticationFailed):
		return "the brokers refuse user or password; see sasl.user and sasl.password_file"
	case IsOneOf(err, kerr.UnsupportedSaslMechanism):
		return "the brokers do not offer this mechanism to log in; see sasl.mechanism"
	case IsOneOf(err, kerr.IllegalSaslState):
		return "this port of the brokers wants no log-in; leave sasl out, or use the port that does"
	case IsOneOf(err, kerr.UnknownTopicOrPartition):
		return "the topic does not exist"
	case IsOneOf(err, kerr.TopicAuthorizationFailed):
		return "the user may not use the topic, or not see it"
	case IsOneOf(err, kerr.GroupAuthorizationFailed):
		return "the user may not join the group"
	case IsOneOf(err, kerr.ClusterAuthorizationFailed):
		return "the user may not write idempotently"
	case IsOneOf(err, kerr.UnsupportedVersion):
		return "the brokers are older than the protocol version in use; see version"
	case errors.As(err, &unknown):
		return "the certificate is signed by an unknown authority; see tls.ca"
	case errors.As(err, &host):
		return "the certificate is for another name; set tls.server_name to it, or use it in brokers"
	case errors.As(err, &invalid):
		return "the certificate is not valid"
	case errors.As(err, &record):
		return "this port of the brokers does not talk TLS; leave tls out, or use the port that does"
	case isAlert(err):
		return "the brokers refuse our certificate, or that there is none; see tls.cert and tls.key"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at the address; see brokers"
	case hungUp(err):
		return "the broker hung up, as it does if its port talks TLS, or wants a log-in (SASL)"
	}
	return ""
}

// hungUp reports whether the other side closed the connection.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}
