package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
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

// makeDoors makes the doors that have an address, without opening them.
func makeDoors(g *config.Guard, decider *gateway.Decider, keys doorKeys, log *slog.Logger) (doors []*guardDoor, err error) {
	makers := map[string]func(d config.Door, k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error){
		"rls": func(d config.Door, k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
			door, err := rls.New(rls.Config{Decider: decider, Tickets: t, TLS: k.tls, Allow: d.Allow, Log: log})
			if err != nil {
				return nil, err
			}
			return &guardDoor{serve: door.Serve, figures: func() doorFigures { return rlsFigures(door.Stats()) }}, nil
		},
		"auth": func(d config.Door, k doorKey, _ *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
			endpoints, err := authEndpoints(g.Auth, d.Listen)
			if err != nil {
				return nil, err
			}
			door, err := auth.New(auth.Config{Decider: decider, Endpoints: endpoints, TLS: k.tls, Token: k.token, Allow: d.Allow, Log: log})
			if err != nil {
				return nil, err
			}
			return &guardDoor{serve: door.Serve, figures: func() doorFigures { return authFigures(door.Stats()) }}, nil
		},
		"check": func(d config.Door, k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
			door, err := check.New(check.Config{Decider: decider, Tickets: t, TLS: k.tls, Token: k.token, Allow: d.Allow, Log: log})
			if err != nil {
				return nil, err
			}
			return &guardDoor{serve: door.Serve, figures: func() doorFigures { return checkFigures(door.Stats()) }}, nil
		},
		"spoe": func(d config.Door, k doorKey, t *gateway.Tickets, log *slog.Logger) (*guardDoor, error) {
			door, err := spoe.New(spoe.Config{Decider: decider, Tickets: t, TLS: k.tls, Allow: d.Allow, Log: log})
			if err != nil {
				return nil, err
			}
			return &guardDoor{serve: door.Serve, figures: func() doorFigures { return spoeFigures(door.Stats()) }}, nil
		},
	}
	var errs []error
	for name, d := range g.Doors() {
		log := log.With("door", name)
		t := gateway.NewTickets(gateway.TicketsConfig{Max: g.MaxTickets, Age: g.TicketAge, Log: log})
		door, err := makers[name](d, keys[name+" "+d.Listen], t, log)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		door.name, door.address, door.tickets = name, d.Listen, t
		doors = append(doors, door)
	}
	return doors, errors.Join(errs...)
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

// doorSocketMode lets every user of the machine connect, since gateways run under users of their
// own. The rights of the socket's directory restrict who can.
const doorSocketMode = 0o666

// close closes a listener that was opened but not served.
func (d *guardDoor) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// doorKeys holds the certificates and tokens of doors, by name and address. Several doors may have
// an address with port 0.
type doorKeys map[string]doorKey

type doorKey struct {
	tls   *tls.Config // nil without a certificate
	token string
}

// readDoorKeys reads the files that the section guard names.
func readDoorKeys(g *config.Guard, log *slog.Logger) (doorKeys, error) {
	keys := make(doorKeys)
	var errs []error
	for name, d := range g.Doors() {
		token, err := d.Token()
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: token: %w", name, err))
		}
		encryption, err := newDoorTLS(name, &d, log)
		if err != nil {
			errs = append(errs, fmt.Errorf("guard.%s: %w", name, err))
		}
		keys[name+" "+d.Listen] = doorKey{encryption, token}
	}
	return keys, errors.Join(errs...)
}
