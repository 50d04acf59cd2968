package testenv

// Advertised returns the address that a server announces to others: advertise(addr), where the
// server listens on addr. With a nil advertise it is addr.
func Advertised(advertise func(addr string) string, addr string) string {
	if advertise == nil {
		return addr
	}
	return advertise(addr)
}
