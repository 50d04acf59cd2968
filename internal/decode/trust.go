package decode

import (
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/hotparam/hotparam/internal/loglimit"
)

// Trust determines whose packets are believed. Its zero value believes all, without bounds. It
// is not copied and not changed once it is used.
type Trust struct {
	Mode TrustMode
	// Senders are the addresses that are believed in mode [TrustListed].
	Senders []netip.Prefix
	// Keys are the keys for mode [TrustSigned]: one of them must have signed a packet. Each has
	// at least [wire.MinKey] bytes.
	Keys [][]byte
	// Caps bound the counts of one sender, whatever the mode.
	Caps Caps
	// Log logs refused packets, at most once in ten seconds for each reason. A nil Log
	// disables it.
	Log *slog.Logger

	refusals [Refusals]loglimit.Limit // lines about them
}

// TrustMode is the criterion for believing a sender.
type TrustMode uint8

const (
	// TrustAll believes everyone who can reach the aggregator.
	TrustAll TrustMode = iota
	// TrustListed believes packets from listed addresses. It does not apply to Unix sockets,
	// which the permissions of their directory protect, and not to Kafka.
	TrustListed
	// TrustSigned believes packets and records that are signed, wherever they come from.
	TrustSigned
)

// replayWindow is how far the send time of a signed packet, by its sender's clock, may be from its
// arrival.
const replayWindow = 30 * time.Second

// isListed reports whether an address is one of Senders.
func (t *Trust) isListed(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return slices.ContainsFunc(t.Senders, func(p netip.Prefix) bool { return p.Contains(a) })
}

// trust is shared by the decoders of one listener or one partition.
type trust struct {
	*Trust
	replays replays
	sets    keySets
}

// WantsPeer reports whether the decoder uses the addresses that packets come from. A source
// then calls [Decoder.SetPeer].
func (d *Decoder) WantsPeer() bool { return d.trust != nil }

// SetPeer sets f, which returns the address that the current packet came from.
func (d *Decoder) SetPeer(f func() netip.Addr) { d.peer = f }

// AdmitsPacket reports whether the current datagram comes from an address that is believed. It
// is called before [Decoder.Packet], so that packets of other senders cost nothing more.
func (d *Decoder) AdmitsPacket() bool {
	return !d.believesListed() || d.peer == nil || d.isListed(d.peer())
}

// AdmitsConnection reports whether a connection from an address is believed. The zero address
// means a Unix socket, which is protected by the permissions of its directory.
func (d *Decoder) AdmitsConnection(from netip.Addr) bool {
	return !d.believesListed() || !from.IsValid() || d.isListed(from)
}

func (d *Decoder) believesListed() bool { return d.trust != nil && d.trust.Mode == TrustListed }

func (d *Decoder) isListed(from netip.Addr) bool {
	listed := d.trust.isListed(from)
	if !listed {
		d.refuse(RefusedUnlisted, from, "")
	}
	return listed
}
