package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/auth"
	"github.com/hotparam/hotparam/cmd/internal/gateway/check"
	"github.com/hotparam/hotparam/cmd/internal/gateway/rls"
	"github.com/hotparam/hotparam/cmd/internal/gateway/spoe"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/base"
)

// openDoor is a door with its listener and its tickets.
type openDoor struct {
	gateway.Door
	name     string // "rls", "auth", "check" or "spoe"
	address  string
	listener net.Listener // nil until it is opened
	tickets  *gateway.Tickets
}

// makeDoors creates the doors that have an address, without opening them.
func makeDoors(c *Config, decider *gateway.Decider) (doors []*openDoor, err error) {
	var errs []error
	for name, d := range c.Guard.Doors() {
		log := c.Log.With("door", name)
		made := &openDoor{name: name, address: d.Listen}
		made.tickets = gateway.NewTickets(gateway.TicketsConfig{Max: c.Guard.MaxTickets, Age: c.Guard.TicketAge, Log: log})
		k := c.Keys[name+" "+d.Listen]
		made.Door, err = makeDoor(name, d.Listen, c.Guard.Auth, gateway.DoorConfig{
			Decider: decider, Tickets: made.tickets, TLS: k.tls, Token: k.token, Allow: d.Allow, Log: log,
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		doors = append(doors, made)
	}
	return doors, errors.Join(errs...)
}

func makeDoor(name, address string, endpoints []config.AuthEndpoint, c gateway.DoorConfig) (gateway.Door, error) {
	switch name {
	case "rls":
		return rls.New(c)
	case "check":
		return check.New(c)
	case "spoe":
		return spoe.New(c)
	}
	doorEndpoints, err := authEndpoints(endpoints, address)
	if err != nil {
		return nil, err
	}
	return auth.New(c, doorEndpoints)
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
func (d *openDoor) open(ctx context.Context) (err error) {
	var lc net.ListenConfig
	path, isUnix := strings.CutPrefix(d.address, "unix:")
	if !isUnix {
		d.listener, err = lc.Listen(ctx, "tcp", d.address)
		return err
	}
	return base.ListenUnix(ctx, "unix", path, socketMode, func() error {
		d.listener, err = lc.Listen(ctx, "unix", path)
		return err
	})
}

// socketMode lets every user of the machine connect, since gateways run as users of their own.
// The permissions of the socket's directory restrict who can.
const socketMode = 0o666

// close closes the listener, if it was opened. The door may have been served.
func (d *openDoor) close() {
	if d.listener != nil {
		_ = d.listener.Close()
	}
}

// serve serves the door until ctx ends. It returns an error if the door ends earlier.
func (d *openDoor) serve(ctx context.Context) error {
	err := d.Serve(ctx, d.listener)
	if err == nil && ctx.Err() == nil {
		return fmt.Errorf("door %s has ended", d.name)
	}
	if err != nil {
		return fmt.Errorf("door %s: %w", d.name, err)
	}
	return nil
}

// DoorCounts are the counters of all doors of one name.
type DoorCounts struct {
	gateway.Figures
	Tickets gateway.TicketStats
}

// Figures returns the counters of the doors, by name.
func (s *Service) Figures() map[string]*DoorCounts {
	all := make(map[string]*DoorCounts)
	for _, d := range s.doors {
		more, tickets := d.Figures(), d.tickets.Stats()
		sum := all[d.name]
		if sum == nil {
			all[d.name] = &DoorCounts{more, tickets}
			continue
		}
		sum.Passed += more.Passed
		sum.Refused += more.Refused
		sum.Connections += more.Connections
		for reason, n := range more.Faults {
			sum.Faults[reason] += n
		}
		for reason, n := range more.Closed {
			sum.Closed[reason] += n
		}
		base.AddCounters(&sum.Tickets, &tickets)
	}
	return all
}
