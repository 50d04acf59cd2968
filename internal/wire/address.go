package wire

import (
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
)

// Address is an address that StatsD lines are sent to, or listened for on.
type Address struct {
	// Network is udp, tcp, unixgram or unix, as in package net.
	Network string
	// Addr is host:port, or the absolute path of a Unix socket.
	Addr string
}

// MaxSocketPath is the longest path of a Unix socket that all systems accept.
const MaxSocketPath = 103

// ParseAddress reads an address in the form of settings. The schemes are those of DogStatsD's
// clients:
//
//	host:port, udp://host:port    datagrams
//	tcp://host:port               lines
//	unix:///path                  datagrams, by a Unix socket
//	unixstream:///path            lines, by a Unix socket
//
// The host may be empty, for all addresses of the machine.
func ParseAddress(s string) (Address, error) {
	scheme, target, found := strings.Cut(s, "://")
	if !found {
		scheme, target = "udp", s
	}
	switch scheme {
	case "udp", "tcp":
		_, port, err := net.SplitHostPort(target)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil {
			return Address{}, fmt.Errorf("address %q: want host:port, for example 127.0.0.1:8125", s)
		}
		return Address{scheme, target}, nil
	case "unix", "unixgram", "unixstream":
		if !filepath.IsAbs(target) || len(target) > MaxSocketPath {
			return Address{}, fmt.Errorf("address %q: want an absolute path of at most %d bytes, for example unix:///run/hotparam/statsd.sock", s, MaxSocketPath)
		}
		if scheme == "unixstream" {
			return Address{"unix", target}, nil
		}
		return Address{"unixgram", target}, nil
	}
	return Address{}, fmt.Errorf("address %q: want host:port, or a scheme of udp, tcp, unix or unixstream", s)
}

// String returns the address in the form of [ParseAddress]. Datagrams over UDP have no scheme.
func (a Address) String() string {
	switch a.Network {
	case "udp":
		return a.Addr
	case "unixgram":
		return "unix://" + a.Addr
	case "unix":
		return "unixstream://" + a.Addr
	}
	return a.Network + "://" + a.Addr
}

// IsStream reports whether bytes arrive in a stream instead of packets.
func (a Address) IsStream() bool { return a.Network == "tcp" || a.Network == "unix" }
