//go:build !linux

package statsdsource

import "syscall"

// drops follows the system's count of the packets that it dropped at a socket, which
// this one does not tell.
type drops struct{}

func (*drops) since(syscall.Conn) int64 { return 0 }
