package testenv

// advertised returns the address that a server names to others: addr, at which it
// listens, or what advertise makes of that.
func Advertised(advertise func(addr string) string, addr string) string {
	if advertise == nil {
		return addr
	}
	return advertise(addr)
}
