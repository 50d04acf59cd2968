package collector

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/cactus/go-statsd-client/v5/statsd"
	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/wire"
)

// StatsDConfig is what a StatsD sink needs. Rules and one of Addr and Sender
// are required.
type StatsDConfig struct {
	// Rules give each rule's prefix and the namespace.
	Rules *hotparam.Rules
	// Addr is the UDP address of the aggregator, or of any StatsD.
	Addr string
	// Sender takes whole packets instead of a UDP socket.
	Sender statsd.Sender
	// Encoding is how keys are written; the receiver must be set the same.
	Encoding wire.Encoding
	// NoMeta leaves the meta lines out, for a StatsD that is not ours.
	NoMeta bool
	// Instance names this process among the senders; empty: host name and
	// process id.
	Instance string
}

func (c *StatsDConfig) validate() error {
	switch {
	case c.Rules == nil:
		return errors.New("collector: StatsDConfig.Rules is missing")
	case (c.Addr == "") == (c.Sender == nil):
		return errors.New("collector: StatsDConfig needs either Addr or Sender")
	case !wire.ValidInstance(c.Instance):
		return fmt.Errorf("collector: StatsDConfig.Instance %q: want 1 to %d of A-Z a-z 0-9 _ . -", c.Instance, wire.MaxInstance)
	}
	return nil
}

// StatsD is a [Sink] that writes StatsD lines.
type StatsD struct {
	client   *statsd.Client
	packer   *packer
	encoding wire.Encoding
	prefixes map[string]string // by rule id
	name     []byte
}

// NewStatsD makes the sink. The address is resolved at the first send and again
// after errors, so it need not exist yet.
func NewStatsD(c StatsDConfig) (*StatsD, error) {
	if c.Instance == "" {
		c.Instance = defaultInstance()
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	sender := c.Sender
	if sender == nil {
		if _, _, err := net.SplitHostPort(c.Addr); err != nil {
			return nil, fmt.Errorf("collector: StatsD address %q: %w (want host:port)", c.Addr, err)
		}
		sender = &udpSender{addr: c.Addr}
	}
	p := &packer{out: sender, meta: !c.NoMeta, buf: make([]byte, 0, wire.MaxPacket)}
	p.head.Instance, p.head.Incarnation = []byte(c.Instance), incarnation()
	client, err := statsd.NewClientWithSender(p, "", 0)
	if err != nil {
		return nil, fmt.Errorf("collector: StatsD client: %w", err)
	}
	s := &StatsD{
		client:   client.(*statsd.Client),
		packer:   p,
		encoding: c.Encoding,
		prefixes: make(map[string]string),
	}
	s.client.SetSamplerFunc(func(float32) bool { return true }) // every line counts
	for i := range c.Rules.Rules {
		rule := &c.Rules.Rules[i]
		s.prefixes[rule.ID] = rule.CountPrefix(c.Rules.Namespace)
	}
	return s, nil
}

// Send implements [Sink].
func (s *StatsD) Send(_ context.Context, flush Flush, counts []Count) Sent {
	s.packer.begin(flush)
	for i := range counts {
		c := &counts[i]
		prefix, ok := s.prefixes[string(c.Rule)]
		if !ok {
			s.packer.sent.Failed += c.N
			s.packer.sent.Err = fmt.Errorf("statsd: the sink has no rule %q: it was made with other rules than the guard", c.Rule)
			continue
		}
		s.name = append(s.name[:0], prefix...)
		s.name = wire.AppendKey(s.name, s.encoding, c.Text)
		s.packer.next(c)
		// The client formats the line and hands it to the packer before it
		// returns, so the name need not be copied.
		_ = s.client.Inc(unsafe.String(&s.name[0], len(s.name)), c.N, 1)
	}
	return s.packer.end()
}

// Fit implements [Sink].
func (s *StatsD) Fit(text []byte) []byte { return s.encoding.Fit(text) }

// Close implements [Sink].
func (s *StatsD) Close() error { return s.client.Close() }

// packer joins the client's lines to packets, each with a meta line at its
// head. It is the client's sender; what is sent when is up to us.
type packer struct {
	out  statsd.Sender
	meta bool
	head wire.Meta
	told Flush // what is to be told of the flush

	buf   []byte
	open  bool  // buf is a packet that has begun
	lines int64 // in buf
	mass  int64 // of the lines in buf
	count int64 // of the line to come
	sent  Sent
}

func (p *packer) begin(f Flush) {
	p.sent, p.told = Sent{}, f
	p.head.Start, p.head.Held = f.Start.UnixNano(), f.Held
}

// next prepares for the line of a count: one with another start needs a packet
// of its own.
func (p *packer) next(c *Count) {
	p.count = c.N
	start := c.Start
	if start.IsZero() {
		start = p.told.Start
	}
	if ns := start.UnixNano(); p.meta && ns != p.head.Start {
		if p.open {
			p.emit()
		}
		p.head.Start = ns
	}
}

// Send takes one line from the client.
func (p *packer) Send(line []byte) (int, error) {
	if p.open && p.lines > 0 && len(p.buf)+1+len(line) > wire.MaxPacket {
		p.emit()
	}
	p.start()
	if len(p.buf)+1+len(line) > wire.MaxPacket {
		p.sent.TooLong += p.count
		return 0, nil
	}
	if len(p.buf) > 0 {
		p.buf = append(p.buf, '\n')
	}
	p.buf = append(p.buf, line...)
	p.lines++
	p.mass += p.count
	return len(line), nil
}

// start begins a packet unless one has begun.
func (p *packer) start() {
	if p.open {
		return
	}
	p.open, p.buf, p.lines, p.mass = true, p.buf[:0], 0, 0
	if p.meta {
		p.head.Seq++
		p.head.Unsent, p.head.Aged = 0, 0
		if p.head.Start == p.told.Start.UnixNano() { // what was dropped was so lately
			p.head.Unsent, p.head.Aged = p.told.Unsent, p.told.Aged
			p.told.Unsent, p.told.Aged = 0, 0 // told once
		}
		p.buf = wire.AppendMeta(p.buf, p.head)
	}
}

// emit sends the packet that has begun.
func (p *packer) emit() {
	p.open = false
	if len(p.buf) == 0 {
		return
	}
	p.sent.Packets++
	if _, err := p.out.Send(p.buf); err != nil {
		p.sent.Failed += p.mass
		p.sent.Err = err
		return
	}
	p.sent.Lines += p.lines
}

// end sends what is left, and a packet of a meta line alone where there is
// something to tell that no other told, or was no other.
func (p *packer) end() Sent {
	if p.told.Unsent > 0 || p.told.Aged > 0 || !p.open && p.sent.Packets == 0 {
		p.next(&Count{})
		p.start()
	}
	if p.open {
		p.emit()
	}
	return p.sent
}

// Close closes what is below; the client calls it.
func (p *packer) Close() error { return p.out.Close() }

// udpSender sends packets over a connected UDP socket: a connected one is told
// when nobody listens.
type udpSender struct {
	addr string
	conn net.Conn
	next time.Time // when to dial anew: the address may have moved
	err  error     // of the last dial, until then
}

const (
	redial       = 30 * time.Second
	redialFailed = time.Second
	dialDeadline = 200 * time.Millisecond
	sendDeadline = 50 * time.Millisecond
)

// Send sends one packet. That nobody listens is the answer to the packet before,
// which was lost and told as sent; so this one goes out and is told as failed in
// its stead: while nobody listens every packet but the first is, and the failure
// does not come and go with each packet.
func (u *udpSender) Send(packet []byte) (int, error) {
	now := time.Now()
	if now.After(u.next) {
		u.dial(now)
	}
	if u.conn == nil {
		return 0, u.err
	}
	_ = u.conn.SetWriteDeadline(now.Add(sendDeadline))
	n, err := u.conn.Write(packet)
	if errors.Is(err, syscall.ECONNREFUSED) {
		_, _ = u.conn.Write(packet)
	}
	if err != nil {
		return n, fmt.Errorf("statsd %s: %w", u.addr, err)
	}
	return n, nil
}

// dial keeps the old socket where a new one cannot be had.
func (u *udpSender) dial(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), dialDeadline)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "udp", u.addr)
	if err != nil {
		u.err, u.next = fmt.Errorf("statsd %s: %w", u.addr, err), now.Add(redialFailed)
		return
	}
	_ = u.Close()
	u.conn, u.next = conn, now.Add(redial)
}

// Close closes the socket.
func (u *udpSender) Close() error {
	if u.conn == nil {
		return nil
	}
	err := u.conn.Close()
	u.conn = nil
	return err
}

func incarnation() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.BigEndian.Uint64(b[:])
}

func defaultInstance() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	clean := strings.Map(func(r rune) rune {
		if r < 0x80 && wire.ValidInstance(string(r)) {
			return r
		}
		return '-'
	}, host)
	return fmt.Sprintf("%.40s-%d", clean, os.Getpid())
}
