package semaphore

// Lease is a number of held permits. The zero Lease holds none. Copies of a Lease refer to the
// same permits. It is safe for concurrent use.
type Lease struct {
	holder Holder // nil in the zero Lease
	id     uint64
}

// Holder keeps the leases that an [Acquirer] grants. One Holder may keep many leases, one after
// the other or at the same time, so that an Acquirer need not allocate for each. The id
// identifies the lease. The methods of a Holder are safe for concurrent use.
type Holder interface {
	// Release releases the permits of a lease. It has no effect if they were released before,
	// even if the Holder has kept other leases since.
	Release(id uint64)
	// Lost returns a channel that is closed when the permits of a lease may have been granted
	// to another caller. It is nil if that cannot happen.
	Lost(id uint64) <-chan struct{}
}

// NewLease returns a Lease for an [Acquirer] to grant.
func NewLease(h Holder, id uint64) Lease { return Lease{h, id} }

// Release releases the permits. Only the first call has an effect, of whichever copy. Defer it,
// so that a panic keeps no permit.
func (l Lease) Release() {
	if l.holder != nil {
		l.holder.Release(l.id)
	}
}

// Lost returns a channel that is closed when the permits may have been granted to another
// caller: leases of a semaphore outside this process expire unless they are renewed. A holder
// that uses permits as a lock should stop then; one that only shares load may continue. The
// channel is nil if permits cannot be lost, as with [Memory].
func (l Lease) Lost() <-chan struct{} {
	if l.holder == nil {
		return nil
	}
	return l.holder.Lost(l.id)
}
