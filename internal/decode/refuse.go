package decode

import (
	"log/slog"
	"net/netip"
	"time"
)

// refuse counts a packet that is not believed, and logs its sender: the instance, if that is
// certain, and an address.
func (d *Decoder) refuse(why Refusal, from netip.Addr, instance string, more ...any) {
	d.stats.Refused[why].Add(1)
	if why != RefusedReplay { // a network that doubles packets causes it too
		d.stats.whyRefused.Store(int64(why))
		d.stats.lastRefused.Store(time.Now().UnixNano())
	}
	if d.trust == nil || d.trust.Log == nil {
		return
	}
	if _, ok := d.trust.Trust.refusals[why].Allow(refusalLog, time.Now()); !ok {
		return
	}
	args := append([]any{slog.String("reason", why.String())}, more...)
	if instance != "" {
		args = append(args, slog.String("instance", instance))
	}
	if from.IsValid() {
		args = append(args, slog.String("from", from.Unmap().String()))
	}
	d.trust.Log.Warn("refused packets: "+refusalHints[why], args...)
}

// source returns the address that the packet came from, or the zero address.
func (d *Decoder) source() netip.Addr {
	if d.peer == nil {
		return netip.Addr{}
	}
	return d.peer()
}
