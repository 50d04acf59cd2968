package e2e

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"
)

// weather is the treatment of packets by the network, as parts of 1.
type weather struct {
	lost, doubled, delayed float64
	maxDelay               time.Duration // longest delay, in which later packets overtake
	seed                   uint64        // seed for the choice of packets
}

// lossPacket is a packet that reached the relay, as its meta line describes it.
type lossPacket struct {
	number    uint64
	start     int64 // no count in it is of before
	arrived   int64 // it came to the relay
	delivered int64 // it left the relay, or 0 if it was lost
}

// lossRelay decides the fate of one sender's packets, and records it.
type lossRelay struct {
	weather
	random *rand.Rand // used by the link's goroutine alone
	flight sync.WaitGroup

	mu      sync.Mutex
	packets []lossPacket
}

var lossMeta = regexp.MustCompile(`^hotparam\.meta:1\|c\|#v:1,i:[^,\n]+,e:[^,\n]+,s:(\d+),t:(\d+)`)

// pass handles one packet for a [testenv.UDPRelay].
func (r *lossRelay) pass(packet []byte, send func([]byte)) {
	p := lossPacket{arrived: time.Now().UnixNano()}
	if m := lossMeta.FindSubmatch(packet); m != nil {
		p.number, _ = strconv.ParseUint(string(m[1]), 10, 64)
		p.start, _ = strconv.ParseInt(string(m[2]), 10, 64)
	}
	r.mu.Lock()
	place := len(r.packets)
	r.packets = append(r.packets, p)
	r.mu.Unlock()
	if r.random.Float64() < r.lost {
		return
	}
	copies := 1
	if r.random.Float64() < r.doubled {
		copies = 2
	}
	for range copies {
		if r.random.Float64() >= r.delayed {
			r.deliver(place, packet, send)
			continue
		}
		later := bytes.Clone(packet)
		r.flight.Add(1)
		time.AfterFunc(time.Duration(r.random.Int64N(int64(r.maxDelay))), func() {
			defer r.flight.Done()
			r.deliver(place, later, send)
		})
	}
}

func (r *lossRelay) deliver(place int, packet []byte, send func([]byte)) {
	send(packet)
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := &r.packets[place]; p.delivered == 0 {
		p.delivered = time.Now().UnixNano()
	}
}
