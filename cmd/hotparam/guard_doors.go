package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"

	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/gateway"
	"github.com/hotparam/hotparam/internal/gateway/auth"
	"github.com/hotparam/hotparam/internal/gateway/check"
	"github.com/hotparam/hotparam/internal/gateway/rls"
	"github.com/hotparam/hotparam/internal/gateway/spoe"
	"github.com/hotparam/hotparam/internal/unixsocket"
)

// guardDoor is a door that is open.
type guardDoor struct {
	name     string // "rls", "auth", "check" or "spoe"
	address  string
	listener net.Listener
	serve    func(context.Context, net.Listener) error
	tickets  *gateway.Tickets // nil if the door holds none
	figures  func() doorFigures
}

// makeDoors makes the doors that have an address. They are not open yet.
func makeDoors(g *config.Guard, decider *gateway.Decider, keys doorKeys, log *slog.Logger) (doors []*guardDoor, err error) {
	var errs []error
	add := func(name string, d config.Door, make func(k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error)) {
		if d.Listen == "" {
			return
		}
		log := log.With("door", name)
		t := gateway.NewTickets(gateway.TicketsConfig{Max: g.MaxTickets, Age: g.TicketAge, Log: log})
		door, err := make(keys[d.Listen], t, log)
		if err != nil {
			errs = append(errs, err)
			return
		}
		door.name, door.address, door.tickets = name, d.Listen, t
		doors = append(doors, door)
	}
	add("rls", g.RLS, func(k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
		d, err := rls.New(rls.Config{Decider: decider, Tickets: t, TLS: k.tls, Allow: g.RLS.Allow, Log: log})
		if err != nil {
			return nil, err
		}
		return &guardDoor{serve: d.Serve, figures: func() doorFigures { return rlsFigures(d.Stats()) }}, nil
	})
	for i, e := range g.Auth {
		if authIsServed(g.Auth[:i], e.Listen) {
			continue
		}
		add("auth", e.Door, func(k doorKey, _ *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
			endpoints, err := authEndpoints(g.Auth, e.Listen)
			if err != nil {
				return nil, err
			}
			d, err := auth.New(auth.Config{Decider: decider, Endpoints: endpoints, TLS: k.tls, Token: k.token, Allow: e.Allow, Log: log})
			if err != nil {
				return nil, err
			}
			return &guardDoor{serve: d.Serve, figures: func() doorFigures { return authFigures(d.Stats()) }}, nil
		})
	}
	add("check", g.Check, func(k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
		d, err := check.New(check.Config{Decider: decider, Tickets: t, TLS: k.tls, Token: k.token, Allow: g.Check.Allow, Log: log})
		if err != nil {
			return nil, err
		}
		return &guardDoor{serve: d.Serve, figures: func() doorFigures { return checkFigures(d.Stats()) }}, nil
	})
	add("spoe", g.SPOE, func(k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
		d, err := spoe.New(spoe.Config{Decider: decider, Tickets: t, TLS: k.tls, Allow: g.SPOE.Allow, Log: log})
		if err != nil {
			return nil, err
		}
		return &guardDoor{serve: d.Serve, figures: func() doorFigures { return spoeFigures(d.Stats()) }}, nil
	})
	return doors, errors.Join(errs...)
}

// authIsServed reports whether one of the endpoints has the address.
func authIsServed(endpoints []config.AuthEndpoint, listen string) bool {
	for _, e := range endpoints {
		if e.Listen == listen {
			return true
		}
	}
	return false
}

// authEndpoints returns the endpoints at an address.
func authEndpoints(all []config.AuthEndpoint, listen string) (endpoints []auth.Endpoint, err error) {
	for _, e := range all {
		switch {
		case e.Listen != listen:
		case e.Scheme == "":
			endpoints = append(endpoints, auth.DefaultEndpoints()...)
		default:
			scheme, err := auth.ParseScheme(e.Scheme)
			if err != nil {
				return nil, err
			}
			endpoints = append(endpoints, auth.Endpoint{Path: e.Path, Scheme: scheme})
		}
	}
	return endpoints, nil
}

// open opens the door's listener.
func (d *guardDoor) open(ctx context.Context) (err error) {
	var lc net.ListenConfig
	path, isUnix := strings.CutPrefix(d.address, "unix:")
	if !isUnix {
		d.listener, err = lc.Listen(ctx, "tcp", d.address)
		return err
	}
	return unixsocket.Listen(ctx, "unix", path, doorSocketMode, func() error {
		d.listener, err = lc.Listen(ctx, "unix", path)
		return err
	})
}

// doorSocketMode lets every user of the machine ask: gateways run as users of their own. The
// directory of the socket decides who may.
const doorSocketMode = 0o666

// close closes a listener that was opened and not served.
func (d *guardDoor) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// doorKeys are the keys and tokens of doors, by address.
type doorKeys map[string]doorKey

type doorKey struct {
	tls   *tls.Config // nil without a certificate
	token string
}

// readDoorKeys reads the files that the section guard names.
func readDoorKeys(g *config.Guard) (doorKeys, error) {
	keys := make(doorKeys)
	var errs []error
	add := func(name string, d config.Door) {
		if d.Listen == "" {
			return
		}
		token, err := d.Token()
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: token: %w", name, err))
		}
		encryption, err := readDoorTLS(&d)
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: %w", name, err))
		}
		keys[d.Listen] = doorKey{encryption, token}
	}
	add("rls", g.RLS)
	for _, e := range g.Auth {
		add("auth", e.Door)
	}
	add("check", g.Check)
	add("spoe", g.SPOE)
	return keys, errors.Join(errs...)
}

// readDoorTLS returns the TLS of a door, or nil. The certificate is read again for each
// connection, so that it can be renewed.
func readDoorTLS(d *config.Door) (*tls.Config, error) {
	if d.Cert == "" {
		return nil, nil
	}
	cert, key := d.Cert, d.Key
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load}
	if d.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(d.ClientCA)
	if err != nil {
		return nil, err
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("client_ca: %s has no certificate in PEM", d.ClientCA)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	return c, nil
}
