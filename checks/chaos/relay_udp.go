package chaos

import (
	"bytes"
	"net"
	"regexp"
	"slices"
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

// metaTimes are the sender's clock in the first line of a packet, Unix nanoseconds: when
// its counts begin, and when it was sent.
var metaTimes = regexp.MustCompile(`,[tw]:(\d+)`)

const metaLine = "hotparam.meta:1|c|#"

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
	if r.offset != 0 && bytes.HasPrefix(packet, []byte(metaLine)) {
		meta, lines, _ := bytes.Cut(packet, []byte("\n"))
		meta = metaTimes.ReplaceAllFunc(meta, func(field []byte) []byte {
			t, err := strconv.ParseInt(string(field[len(",t:"):]), 10, 64)
			if err != nil {
				return field
			}
			return strconv.AppendInt(bytes.Clone(field[:len(",t:")]), t+int64(r.offset), 10)
		})
		packet = slices.Concat(meta, []byte("\n"), lines)
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
