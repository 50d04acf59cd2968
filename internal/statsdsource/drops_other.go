//go:build !linux

package statsdsource

// drops would report the packets that the system dropped at a socket. This system does not
// report them.
type drops struct{}

func (*drops) since(*packetSocket) int64 { return 0 }
