package service

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/hotparam/hotparam/config"
)

// Credentials holds the certificates and tokens of doors, by name and address. Several doors may
// have an address with port 0.
type Credentials map[string]credential

type credential struct {
	tls   *tls.Config // nil without a certificate
	token string
}

// ReadKeys reads the files named in section guard.
func ReadKeys(g *config.Guard, log *slog.Logger) (Credentials, error) {
	keys := make(Credentials)
	var errs []error
	for name, d := range g.Doors() {
		token, err := d.Token()
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: token: %w", name, err))
		}
		encryption, err := NewTLS(name, &d, log)
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: %w", name, err))
		}
		keys[name+" "+d.Listen] = credential{encryption, token}
	}
	return keys, errors.Join(errs...)
}
