package chaos

import (
	"bytes"
	"net"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// udpRelay forwards packets of counts from one instance to an aggregator.
type udpRelay struct {
	out  net.Conn
	in   net.PacketConn
	work sync.WaitGroup

	mu     sync.Mutex
	cut    bool
	offset time.Duration // of the sender's clock, as the aggregator sees it
	line   []byte        // a count of the key that stands for others
}

// newUDPRelay forwards to target. Of the packets with sample in a line, it keeps the line.
func newUDPRelay(target, sample string) (*udpRelay, error) {
	in, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	out, err := net.Dial("udp", target)
	if err != nil {
		in.Close()
		return nil, err
	}
	r := &udpRelay{in: in, out: out}
	r.work.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, _, err := in.ReadFrom(buf)
			if err != nil {
				return
			}
			if packet, ok := r.treat(buf[:n], sample); ok {
				_, _ = out.Write(packet) // UDP: it may be lost
			}
		}
	})
	return r, nil
}

func (r *udpRelay) addr() string { return r.in.LocalAddr().String() }

func (r *udpRelay) close() {
	r.in.Close()
	r.work.Wait()
	r.out.Close()
}

// metaTime is the sender's clock in the first line of a packet: Unix nanoseconds.
var metaTime = regexp.MustCompile(`^hotparam\.meta:1\|c\|#[^\n]*,t:(\d+)`)

func (r *udpRelay) treat(packet []byte, sample string) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.line == nil {
		for line := range bytes.Lines(packet) {
			if bytes.Contains(line, []byte(sample)) {
				r.line = bytes.Clone(bytes.TrimSpace(line))
			}
		}
	}
	if m := metaTime.FindSubmatchIndex(packet); m != nil && r.offset != 0 {
		if t, err := strconv.ParseInt(string(packet[m[2]:m[3]]), 10, 64); err == nil {
			changed := strconv.AppendInt(bytes.Clone(packet[:m[2]]), t+int64(r.offset), 10)
			packet = append(changed, packet[m[3]:]...)
		}
	}
	return packet, !r.cut
}

func (r *udpRelay) setCut(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = cut
}

func (r *udpRelay) setOffset(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset = d
}

// sampleLine returns a line of the key that stands for others; nil until one has come.
func (r *udpRelay) sampleLine() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.line
}
