package aggregator

import "net/netip"

// lists reports whether the datagram at hand is from an address that is listed, if it has
// to be. It is asked before anything of the packet is looked at.
func (d *Decoder) lists() bool {
	if d.trust == nil || d.trust.Mode != TrustListed || d.peer == nil {
		return true
	}
	from := d.peer()
	return d.believes(from, d.trust.isListed(from))
}

// listsAddress reports the same of the other end of a connection. Unix sockets have no
// addresses: who may write to one is a matter of the rights of its directory.
func (d *Decoder) listsAddress(from netip.Addr) bool {
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
