package statsdsource

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// drops follows the system's count of packets that it dropped at a socket, because the buffer
// was full or a checksum was wrong.
type drops struct{ seen uint32 }

// since returns the number of packets that the system dropped since the last call, or 0 if it
// does not report that. SO_RXQ_OVFL was rejected: it reports drops with the next packet, and so
// misses the end of a burst.
func (d *drops) since(socket *packetSocket) int64 {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	errno := syscall.ENOTSUP
	_ = socket.withDescriptor(func(fd int) {
		_, _, errno = syscall.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
			uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	})
	if errno != 0 || size < uint32(unsafe.Sizeof(info)) {
		return 0
	}
	n := info[unix.SK_MEMINFO_DROPS] - d.seen // wraps around at 32 bits
	d.seen += n
	return int64(n)
}
