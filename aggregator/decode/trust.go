package decode

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
	"github.com/hotparam/hotparam/wire"
)

// Trust says whose packets are believed. Its zero value believes all, without bounds. It is
// not copied and not changed once it is used.
type Trust struct {
	Mode TrustMode
	// Senders are the addresses that are believed if Mode is [TrustListed].
	Senders []netip.Prefix
	// Keys are those of which one must have signed a packet if Mode is [TrustSigned],
	// each of [wire.MinKey] bytes at least.
	Keys [][]byte
	// Window is how far the time at which a signed packet was sent, by its sender's clock,
	// may be from its arrival; 0 is [DefaultReplayWindow].
	Window time.Duration
	// Caps bound what one sender can do, whatever the mode.
	Caps Caps
	// Log gets a line when packets are refused, at most one in ten seconds for each
	// reason; nil: nothing is logged.
	Log *slog.Logger

	refusals [Refusals]loglimit.Limit // lines about them
}

// TrustMode says by what a sender is believed.
type TrustMode uint8

const (
	// TrustAll believes whoever can reach the aggregator.
	TrustAll TrustMode = iota
	// TrustListed believes packets from listed addresses. It does not apply to Unix
	// sockets, which the rights of their directory protect, and not to Kafka.
	TrustListed
	// TrustSigned believes packets and records that are signed, from wherever they come.
	TrustSigned
)

// DefaultReplayWindow is Trust.Window by default.
const DefaultReplayWindow = 30 * time.Second

// Validate returns what is wrong.
func (t *Trust) Validate() error {
	switch {
	case t.Mode > TrustSigned:
		return fmt.Errorf("Trust.Mode is %d: want TrustAll, TrustListed or TrustSigned", t.Mode)
	case t.Mode == TrustListed && len(t.Senders) == 0:
		return errors.New("Trust.Senders is missing: TrustListed believes nobody else")
	case t.Mode == TrustSigned && len(t.Keys) == 0:
		return errors.New("Trust.Keys is missing: TrustSigned verifies by them")
	case t.Window < 0:
		return fmt.Errorf("Trust.Window is %v, must not be negative", t.Window)
	}
	for i, key := range t.Keys {
		if len(key) < wire.MinKey {
			return fmt.Errorf("Trust.Keys: key %d has %d bytes, want %d at least", i+1, len(key), wire.MinKey)
		}
	}
	for _, p := range t.Senders {
		if !p.IsValid() {
			return errors.New("Trust.Senders has a prefix that is none")
		}
	}
	return t.Caps.validate()
}

// isListed reports whether an address is one of Senders.
func (t *Trust) isListed(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	for _, p := range t.Senders {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// trust is what the decoders of one listener, or of one partition, share.
type trust struct {
	*Trust
	window  time.Duration
	replays replays
	sets    keySets
}

// Believe sets whose packets the decoder believes. It is called before the first packet. A
// nil t believes all.
func (d *Decoder) Believe(t *Trust) {
	if t == nil {
		return
	}
	d.trust = &trust{Trust: t, window: cmp.Or(t.Window, DefaultReplayWindow)}
	d.senders.names = newNameCaps(&t.Caps)
	d.senders.mostClaimed = t.Caps.claims()
	d.believe()
}

// ShareSenders makes the decoder one of several that follow the same senders, with those of
// other: an instance that dials anew comes to another socket, and that is no loss. It is
// called before the first packet.
func (d *Decoder) ShareSenders(other *Decoder) {
	d.senders, d.trust = other.senders, other.trust
	d.believe()
}

func (d *Decoder) believe() {
	if d.trust == nil {
		return
	}
	if d.trust.Mode == TrustSigned {
		d.mac = wire.NewMAC(d.trust.Keys...)
	}
	d.capped = d.trust.Caps.Counts > 0 || d.trust.Caps.Keys > 0
}
