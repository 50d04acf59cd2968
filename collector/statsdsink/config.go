package statsdsink

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// Config configures a sink. Rules and one of Addrs and Sender are required.
type Config struct {
	// Rules are the rules that the collector counts by, with the namespace.
	Rules *rules.Rules
	// Addrs are the addresses of the aggregators, or of any StatsD server, usually one, in
	// the form of [wire.ParseAddress]: UDP, TCP or a Unix socket, of datagrams or a stream.
	// Each has its own socket, so that an address that cannot be reached, or accepts nothing,
	// does not affect the others. Except over UDP, a slow receiver blocks its senders for at
	// most a fifth of the time, during which further counts add up. Counts that cannot be sent
	// within that time are reported as failed.
	Addrs []string
	// Spread selects which of several addresses a key's counts go to: [SpreadHash] or [SpreadAll].
	// Empty means SpreadHash.
	Spread string
	// Sender receives whole packets; it replaces the sockets.
	Sender Sender
	// Strict writes keys in letters, digits and _-= only, which Graphite can store. The
	// receiver must have the same setting.
	Strict bool
	// NoMeta is for a StatsD server other than hotparam's aggregator: no meta lines, no
	// origins, and no packets for flushes without counts are sent. Such a server counts a line
	// when it arrives. It does not learn which counts were lost, dropped, or held back while
	// there are more keys than the collector's budget has lines. Held-back counts arrive late
	// by up to the longest window, so a window's count of a key may be too high by less than a
	// quarter of a threshold. [collector.Collector.Stats] still reports lost counts.
	NoMeta bool
	// Instance names this process among the senders. Empty means
	// [collector.DefaultInstance].
	Instance string
	// Key signs each packet, for an aggregator that accepts only signed ones. It has at least
	// [wire.MinKey] bytes. With a nil Key, packets are not signed. A StatsD server in between
	// would send its own packets, which it cannot sign.
	Key []byte
}

// Sender sends packets to one address.
type Sender interface {
	// Send sends one packet, whose bytes are only valid during the call.
	Send(packet []byte) (int, error)
	Close() error
}

func (c *Config) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("statsdsink: Config.Rules is missing")
	case (len(c.Addrs) == 0) == (c.Sender == nil):
		return errors.New("statsdsink: Config needs either Addrs or Sender")
	case c.Spread != "" && c.Spread != SpreadHash && c.Spread != SpreadAll:
		return fmt.Errorf("statsdsink: Config.Spread is %q: want hash or all", c.Spread)
	case c.Key != nil && len(c.Key) < wire.MinKey:
		return fmt.Errorf("statsdsink: Config.Key has %d bytes: want %d at least", len(c.Key), wire.MinKey)
	case c.Key != nil && c.NoMeta:
		return errors.New("statsdsink: Config.Key signs meta lines, and NoMeta leaves them out")
	case !wire.ValidInstance(c.Instance):
		return fmt.Errorf("statsdsink: Config.Instance %q: want 1 to %d of A-Z a-z 0-9 _ . -", c.Instance, wire.MaxInstance)
	}
	return nil
}

// parseAddrs parses Addrs and normalises their spelling, since the choice of a key's
// address must not depend on how the address was written.
func (c *Config) parseAddrs() (addrs []wire.Address, names []string, err error) {
	for _, text := range c.Addrs {
		addr, err := wire.ParseAddress(text)
		if err != nil {
			return nil, nil, fmt.Errorf("statsdsink: %w", err)
		}
		name := addr.String()
		if slices.Contains(names, name) {
			return nil, nil, fmt.Errorf("statsdsink: address %q is given twice", text)
		}
		addrs, names = append(addrs, addr), append(names, name)
	}
	return addrs, names, nil
}
