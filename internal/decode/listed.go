package decode

import "net/netip"

// WantsPeer reports whether the decoder uses the addresses that packets come from. A source
// then calls [Decoder.SetPeer].
func (d *Decoder) WantsPeer() bool { return d.trust != nil }

// SetPeer sets f, which returns the address that the current packet came from.
func (d *Decoder) SetPeer(f func() netip.Addr) { d.peer = f }

// AdmitsPacket reports whether the current datagram comes from an address that is believed. It
// is called before [Decoder.Packet], so that packets of other senders cost nothing more.
func (d *Decoder) AdmitsPacket() bool {
	if d.trust == nil || d.trust.Mode != TrustListed || d.peer == nil {
		return true
	}
	from := d.peer()
	return d.believes(from, d.trust.isListed(from))
}

// AdmitsConnection reports whether a connection from an address is believed. The zero address
// means a Unix socket, which is protected by the permissions of its directory.
func (d *Decoder) AdmitsConnection(from netip.Addr) bool {
	if d.trust == nil || d.trust.Mode != TrustListed || !from.IsValid() {
		return true
	}
	return d.believes(from, d.trust.isListed(from))
}

func (d *Decoder) believes(from netip.Addr, listed bool) bool {
	if !listed {
		d.refuse(RefusedUnlisted, from, "")
	}
	return listed
}
