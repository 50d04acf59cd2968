package decode

import "net/netip"

// WantsPeer reports whether the decoder uses the addresses that packets come from, so that
// a source calls [Decoder.SetPeer].
func (d *Decoder) WantsPeer() bool { return d.trust != nil }

// SetPeer sets f, which returns the address that the packet at hand came from.
func (d *Decoder) SetPeer(f func() netip.Addr) { d.peer = f }

// AdmitsPacket reports whether the datagram at hand comes from an address that is believed.
// It is called before [Decoder.Packet], so that a packet of anyone else costs no more.
func (d *Decoder) AdmitsPacket() bool {
	if d.trust == nil || d.trust.Mode != TrustListed || d.peer == nil {
		return true
	}
	from := d.peer()
	return d.believes(from, d.trust.isListed(from))
}

// AdmitsConnection reports whether a connection from an address is believed. The zero address
// is that of a Unix socket, which is protected by the permissions of its directory.
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
