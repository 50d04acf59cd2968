//go:build !linux

package statsdsource

// drops would report the packets that the system dropped at a socket, which this system does
// not.
type drops struct{}

func (*drops) since(*packetSocket) int64 { return 0 }
