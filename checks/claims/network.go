package claims

import (
	"container/heap"
	"math/rand/v2"
	"sync"
)

// network carries packets from the instances to the aggregator on the run's clock. It records in
// the references the counts that do not arrive in time.
type network struct {
	Network
	now       int64
	sending   sync.Mutex
	flight    flight
	free      [][]byte
	order     uint64
	senders   []packetSender
	addAbsent func(content []content, change gap)
	parse     func(packet []byte, sent int64) ([]content, int64)
	blind     int64 // counts that instances hide of any key and that the aggregator cannot know about
	lost      int64 // number of lost packets
	mass      struct{ lost, refused int64 }
	doubled   int64
}

// packetSender is the state of an instance's packets.
type packetSender struct {
	random       *rand.Rand
	sent         uint64
	delivered    uint64 // highest number delivered; zero if none
	lastDelivery int64  // time of the last delivery
	missing      []missing
}

// missing is a packet that was lost or is late.
type missing struct {
	number  uint64
	sent    int64
	content []content
	hidden  int64 // most counts hidden of any key, as reported in the packet
	secret  bool  // the aggregator cannot know yet that the packet is missing
}

func newNetwork(n Network, seed uint64, instances int) *network {
	net := &network{Network: n, senders: make([]packetSender, instances)}
	for i := range net.senders {
		net.senders[i].random = rand.New(rand.NewPCG(seed, uint64(i)))
	}
	return net
}

// tap is an instance's end of the network.
type tap struct {
	net      *network
	instance int
}

// Send sends a packet over the network. It never fails.
func (t *tap) Send(packet []byte) (int, error) {
	t.net.sendPacket(t.instance, packet)
	return len(packet), nil
}

// Close does nothing.
func (t *tap) Close() error { return nil }

// passTo sets the time at which packets are sent.
func (n *network) passTo(instant int64) {
	n.sending.Lock()
	n.now = instant
	n.sending.Unlock()
}

// sendPacket may be called by several goroutines, but not concurrently with any other method.
func (n *network) sendPacket(instance int, bytes []byte) {
	n.sending.Lock()
	defer n.sending.Unlock()
	s := &n.senders[instance]
	s.sent++
	p := packet{instance: instance, number: s.sent, sent: n.now, arrives: n.now + n.delay(s.random)}
	switch {
	case n.Lost > 0 && s.random.Float64() < n.Lost:
		n.lost++
		n.mass.lost += n.recordMissing(p.instance, p.number, bytes)
		return
	case p.arrives-n.now >= int64(lag):
		n.recordMissing(p.instance, p.number, bytes)
	}
	doubled := n.Doubled > 0 && s.random.Float64() < n.Doubled
	if doubled {
		p.twin = new(twins)
	}
	n.addInFlight(p, bytes)
	if doubled {
		n.doubled++
		p.arrives = n.now + n.delay(s.random)
		n.addInFlight(p, bytes)
	}
}

// delay returns how long a packet is on its way.
func (n Network) delay(random *rand.Rand) int64 {
	if n.Most == 0 {
		return 0
	}
	return int64(n.Least) + random.Int64N(int64(n.Most-n.Least)+1)
}

func (n *network) addInFlight(p packet, bytes []byte) {
	if k := len(n.free); k > 0 {
		p.bytes, n.free = n.free[k-1][:0], n.free[:k-1]
	}
	p.bytes = append(p.bytes, bytes...)
	n.order++
	p.order = n.order
	heap.Push(&n.flight, p)
}

// recordMissing records a packet's counts as absent and returns their sum.
func (n *network) recordMissing(instance int, number uint64, bytes []byte) (mass int64) {
	m := missing{number: number, sent: n.now, secret: true}
	m.content, m.hidden = n.parse(bytes, n.now)
	n.addAbsent(m.content, gap{1, 1})
	n.blind += m.hidden
	s := &n.senders[instance]
	s.missing = append(s.missing, m)
	for _, c := range m.content {
		mass += c.n
	}
	return mass
}

// hiddenInMissing returns the most that can be hidden of any key, as reported in packets that were
// sent since an instant and have not arrived.
func (n *network) hiddenInMissing(since int64) (sum int64) {
	for i := range n.senders {
		highest := int64(0)
		for _, m := range n.senders[i].missing {
			if m.sent >= since {
				highest += m.hidden
			}
		}
		sum += highest
	}
	return sum
}

// next returns the next packet to arrive, if it arrives before an instant.
func (n *network) next(before int64) (packet, bool) {
	if len(n.flight) == 0 || n.flight[0].arrives >= before {
		return packet{}, false
	}
	return heap.Pop(&n.flight).(packet), true
}

// rememberedPackets is the number of packets of an instance that an aggregator distinguishes. With
// a budget of lines, fewer are sent in the time that counts may come late.
const rememberedPackets = 4096

// overtakers returns the number of packets that overtook a packet.
func (n *network) overtakers(p packet) int64 {
	return int64(n.senders[p.instance].delivered) - int64(p.number)
}

// forgetAfter is the time of silence after which an aggregator may have forgotten an instance.
const forgetAfter = 60 * second

// recordDelivery records that a packet was passed to the aggregator.
func (n *network) recordDelivery(p packet) {
	s := &n.senders[p.instance]
	known := s.delivered > 0 && p.arrives-s.lastDelivery < forgetAfter
	if p.number > s.delivered {
		kept := s.missing[:0]
		for _, m := range s.missing {
			if m.number > p.number {
				kept = append(kept, m)
				continue
			}
			if known && m.number > s.delivered && m.secret {
				n.addAbsent(m.content, gap{0, -1})
				n.blind -= m.hidden
				m.secret = false
			}
			kept = append(kept, m)
		}
		s.missing = kept
		s.delivered = p.number
	}
	s.lastDelivery = p.arrives
	for len(s.missing) > 1024 { // packets of panes long gone
		if s.missing[0].secret {
			n.blind -= s.missing[0].hidden
		}
		s.missing = s.missing[1:]
	}
	n.free = append(n.free, p.bytes)
}

// recordFirstArrival records a packet that is no longer missing, or one that came and was refused.
// taken says that the aggregator accepted it.
func (n *network) recordFirstArrival(p packet, taken bool) {
	s := &n.senders[p.instance]
	for i, m := range s.missing {
		if m.number != p.number {
			continue
		}
		if taken {
			change := gap{absent: -1}
			if m.secret {
				change.secret = -1
				n.blind -= m.hidden
			}
			n.addAbsent(m.content, change)
			s.missing = append(s.missing[:i], s.missing[i+1:]...)
			return
		}
		for _, c := range m.content {
			n.mass.refused += c.n
		}
		return
	}
	if taken {
		return
	}
	content, _ := n.parse(p.bytes, p.sent) // the gap was reported before
	for _, c := range content {
		n.mass.refused += c.n
	}
	n.addAbsent(content, gap{absent: 1})
}
