package statsdsource

import (
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readBatch is the number of messages of one read, and leastBatch that of messages with many
// packets.
const (
	readBatch  = 64
	leastBatch = 4
)

// receiver reads many messages at a time (recvmmsg), each with the time at which the system
// received it. Packets wait in the socket while the reader is busy, so the time of the read is
// not the time of their counts. Senders' addresses are decoded only when they are needed:
// x/net's ReadBatch allocates memory for each.
//
// A message is one packet, or several packets of one sender and one length that came together
// (UDP_GRO). The system passes them up as one message, in one copy.
type receiver struct {
	socket   *packetSocket
	recv     func(fd int) // made once, so that a read allocates nothing
	messages [readBatch]message
	iovecs   [readBatch]syscall.Iovec
	control  [readBatch]controlBuffer
	buffers  [readBatch][]byte
	sources  *[readBatch]syscall.RawSockaddrInet6 // nil if they are not requested
	batch    int                                  // number of messages of the next read
	n        int
	full     bool // the last read may have left messages in the socket
	errno    syscall.Errno
}

// message is struct mmsghdr.
type message struct {
	header syscall.Msghdr
	n      uint32
}

// controlBuffer is a buffer for the control messages of a packet: a timestamp, and the length of
// the packets that were merged. Each is a struct cmsghdr and a value, at a multiple of 8 bytes.
type controlBuffer [64]byte

func newReceiver(socket *packetSocket) *receiver {
	// Without timestamps, the time of packets is that of their read.
	_ = socket.withDescriptor(func(fd int) {
		_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
		if socket.isUDP() {
			_ = syscall.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, 1) // since Linux 5.0
		}
	})
	r := &receiver{socket: socket, batch: readBatch}
	for i := range r.messages {
		r.buffers[i] = make([]byte, maxDatagram+1) // a longer packet fills it
		r.iovecs[i].Base = &r.buffers[i][0]
		r.iovecs[i].SetLen(maxDatagram + 1)
		h := &r.messages[i].header
		h.Iov, h.Iovlen = &r.iovecs[i], 1
		h.Control = &r.control[i][0]
	}
	r.recv = r.receive
	return r
}

// askSources requests the senders' addresses from now on.
func (r *receiver) askSources() {
	r.sources = new([readBatch]syscall.RawSockaddrInet6) // also has room for an IPv4 address
	for i := range r.messages {
		r.messages[i].header.Name = (*byte)(unsafe.Pointer(&r.sources[i]))
	}
}

// source returns the address of the sender of message i, or the zero address if addresses are
// not requested.
func (r *receiver) source(i int) netip.Addr {
	if r.sources == nil || r.messages[i].header.Namelen == 0 {
		return netip.Addr{}
	}
	switch a := &r.sources[i]; a.Family {
	case syscall.AF_INET:
		return netip.AddrFrom4((*syscall.RawSockaddrInet4)(unsafe.Pointer(a)).Addr)
	case syscall.AF_INET6:
		return netip.AddrFrom16(a.Addr).Unmap()
	}
	return netip.Addr{}
}

// read waits for messages, at most a tick, and returns their number. They are valid until the
// next read. If there are none it returns [os.ErrDeadlineExceeded].
func (r *receiver) read() (n int, err error) {
	if err := r.socket.withDescriptor(r.recv); err != nil {
		return 0, err
	}
	switch r.errno {
	case 0:
		return r.n, nil
	case syscall.EAGAIN, syscall.EINTR: // a signal ends a tick early
		return 0, os.ErrDeadlineExceeded
	}
	return 0, os.NewSyscallError("recvmmsg", r.errno)
}

func (r *receiver) receive(fd int) {
	for i := range r.messages[:r.batch] {
		r.messages[i].header.Controllen = 0
		r.messages[i].header.SetControllen(len(controlBuffer{}))
		if r.sources != nil {
			r.messages[i].header.Namelen = syscall.SizeofSockaddrInet6
		}
	}
	// MSG_WAITFORONE waits for the first packet only.
	n, _, errno := syscall.Syscall6(syscall.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.messages)), uintptr(r.batch), unix.MSG_WAITFORONE, 0, 0)
	if r.n, r.errno = int(n), errno; errno == 0 && r.socket.closed.Load() {
		r.n, r.errno = 0, syscall.EAGAIN // reads of a socket that is shut down return no packets
	}
	r.full = errno == 0 && r.n == r.batch
	r.adapt()
}

// adapt sets the number of messages of the next read. It is lower if the messages of the last
// read took more than a batch: a read of 64 messages of 64 KiB would delay everything that waits
// for its end.
func (r *receiver) adapt() {
	size := 0
	for i := range r.n {
		size += int(r.messages[i].n)
	}
	switch {
	case size > maxBatch:
		r.batch = max(leastBatch, r.batch/2)
	case size < maxBatch/4:
		r.batch = readBatch
	}
}

// message returns message i, the length of its packets (the last may be shorter), and
// the time of their arrival. That is not before since, the earliest time at which it can have
// waited, since the clock may have been set in between.
func (r *receiver) message(i int, now, since time.Time) (packets []byte, length int, when time.Time) {
	m := &r.messages[i]
	packets, length = r.buffers[i][:m.n], int(m.n)
	for headers := r.control[i][:min(int(m.header.Controllen), len(controlBuffer{}))]; len(headers) >= syscall.SizeofCmsghdr; {
		h := (*syscall.Cmsghdr)(unsafe.Pointer(&headers[0]))
		size := int(h.Len)
		if size < syscall.SizeofCmsghdr || size > len(headers) {
			break
		}
		value := headers[syscall.SizeofCmsghdr:size]
		switch {
		case h.Level == syscall.SOL_SOCKET && h.Type == syscall.SCM_TIMESTAMPNS && len(value) >= int(unsafe.Sizeof(syscall.Timespec{})):
			waited := now.Sub(time.Unix((*syscall.Timespec)(unsafe.Pointer(&value[0])).Unix()))
			now = now.Add(-min(max(0, waited), max(0, now.Sub(since))))
		case h.Level == unix.SOL_UDP && h.Type == unix.UDP_GRO && len(value) >= 4:
			if n := int(*(*int32)(unsafe.Pointer(&value[0]))); n > 0 {
				length = n
			}
		}
		headers = headers[min(len(headers), (size+7)&^7):]
	}
	return packets, length, now
}
