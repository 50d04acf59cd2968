package kafka

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"
)

// version is a release of Kafka: 3.6, 3.6.2.
var version = regexp.MustCompile(`^\d{1,2}\.\d{1,2}(\.\d{1,2}){0,2}$`)

const maxTimeout = time.Minute

// Validate reports the first error of the connection, with the field's name and an
// example. It opens no file and reaches no broker.
func (c *Connection) Validate() error {
	if len(c.Brokers) == 0 {
		return errors.New("brokers: none; give some of the cluster's, as kafka-1:9092")
	}
	for _, addr := range c.Brokers {
		if err := validateAddr(addr); err != nil {
			return fmt.Errorf("brokers: %q: %w; want host:port, as kafka-1:9092", addr, err)
		}
	}
	switch {
	case c.Version != "" && !version.MatchString(c.Version):
		return fmt.Errorf("version: %q; want a release of Kafka, as 3.6 or 4.0.1", c.Version)
	case c.Timeout < 0 || c.Timeout > maxTimeout:
		return fmt.Errorf("timeout: %v; want up to %v, as 5s", c.Timeout, maxTimeout)
	}
	if c.TLS != nil {
		if err := c.TLS.validate(); err != nil {
			return fmt.Errorf("tls: %w", err)
		}
	}
	if c.SASL != nil {
		if err := c.SASL.validate(); err != nil {
			return fmt.Errorf("sasl: %w", err)
		}
	}
	return nil
}

func validateAddr(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		var bad *net.AddrError
		if errors.As(err, &bad) {
			return errors.New(bad.Err) // it would repeat the address
		}
		return err
	}
	if host == "" {
		return errors.New("the host is missing")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("port %q is none", port)
	}
	return nil
}

func (t *TLS) validate() error {
	switch {
	case (t.Cert == "") != (t.Key == ""):
		return errors.New("cert and key: one is missing; a client certificate needs both, as cert: client.pem, key: client-key.pem")
	case t.Insecure && t.CA != "":
		return errors.New("ca and insecure: want one; insecure takes any certificate, so ca would check nothing")
	}
	return nil
}

func (s *SASL) validate() error {
	switch s.Mechanism {
	case Plain, SCRAMSHA256, SCRAMSHA512:
	default:
		return fmt.Errorf("mechanism: %q; want %s, %s or %s", s.Mechanism, Plain, SCRAMSHA256, SCRAMSHA512)
	}
	if s.User == "" {
		return errors.New("user: missing; the name that the brokers know us by, as hotparam")
	}
	sources := 0
	for _, set := range []string{s.PasswordFile, s.PasswordEnv, s.Password} {
		if set != "" {
			sources++
		}
	}
	if sources != 1 {
		return fmt.Errorf("password_file, password_env, password: %d of them are given; want one, as password_file: /run/secrets/kafka", sources)
	}
	return nil
}
