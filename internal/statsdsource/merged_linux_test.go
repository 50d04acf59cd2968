package statsdsource

import (
	"bytes"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// writeMerged sends packets as one message. All but the last must have one length, and the last
// must not be longer.
func writeMerged(conn net.Conn, packets [][]byte) error {
	oob := make([]byte, unix.CmsgSpace(2))
	h := (*unix.Cmsghdr)(unsafe.Pointer(&oob[0]))
	h.Level, h.Type = unix.IPPROTO_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
	*(*uint16)(unsafe.Pointer(&oob[unix.CmsgLen(0)])) = uint16(len(packets[0]))
	_, _, err := conn.(*net.UDPConn).WriteMsgUDP(bytes.Join(packets, nil), oob, nil)
	return err
}

// Packets that the system has merged are split as they were sent, with one time of arrival,
// together with packets that it has not merged.
func TestReceiverTakesMergedPackets(t *testing.T) {
	l, err := listenStatsD(t.Context(), []string{"127.0.0.1:0"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	r := l.packets[0]
	merges := 0
	if err := r.socket.withDescriptor(func(fd int) { merges, _ = unix.GetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO) }); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", l.addrs[0].String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packet := func(i, length int) []byte { return append(fmt.Appendf(nil, "%04d", i), make([]byte, length-4)...) }
	var want [][]byte
	messages := 0
	for i, n := range []int{1, 2, 40, 1, 5} {
		var all [][]byte
		for k := range n {
			length := 100
			if k == n-1 {
				length = 4 + 24*i // as long, shorter, or alone
			}
			all = append(all, packet(len(want)+k, length))
		}
		if err := writeMerged(conn, all); err != nil {
			t.Skipf("the system does not cut messages into packets: %v", err)
		}
		messages++
		want = append(want, all...)
	}
	if _, err := conn.Write(nil); err != nil { // an empty packet is one, too
		t.Fatal(err)
	}
	messages++
	want = append(want, []byte{})

	var got [][]byte
	read := 0
	for began := time.Now(); len(got) < len(want) && time.Since(began) < time.Minute; {
		n, _ := r.receiver.read()
		read += n
		now := time.Now()
		for i := range n {
			message, length, when := r.receiver.message(i, now, r.opened)
			if when.After(now) || when.Before(r.opened) {
				t.Errorf("message %d came %v ago", i, now.Sub(when))
			}
			for p := range packetsOf(message, length) {
				got = append(got, bytes.Clone(p))
			}
		}
	}
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("%d packets, want %d: %.5q", len(got), len(want), got)
	}
	if merges == 1 && read != messages {
		t.Errorf("%d messages were read, %d sent", read, messages)
	}
}

// Reads of messages that hold many packets become short, and later long again.
func TestReadsOfLargeMessagesAreShort(t *testing.T) {
	r := &receiver{batch: readBatch}
	read := func(length uint32) (size int) {
		r.n = r.batch
		for i := range r.messages[:r.n] {
			r.messages[i].n = length
		}
		r.adapt()
		return r.batch * int(length)
	}
	size := 0
	for range 10 {
		size = read(maxDatagram)
	}
	if size > maxBatch || size < maxBatch/4 {
		t.Errorf("a read takes %d bytes of the largest messages, want about %d", size, maxBatch)
	}
	if size = read(1000); size != readBatch*1000 {
		t.Errorf("a read takes %d bytes of small packets, want %d", size, readBatch*1000)
	}
	r.n = -1 // as after an error
	if r.adapt(); r.batch != readBatch {
		t.Errorf("a read takes %d messages after an error", r.batch)
	}
}
