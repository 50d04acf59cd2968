package chaos

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// mode is how a relay treats the traffic.
type mode int

const (
	through   mode = iota
	cut            // connections break, and new ones break at once
	silent         // connections open and stay open, but nothing comes through
	slow           // each answer comes late
	garbled        // answers have bytes changed
	throttled      // Kafka's answers ask for pauses of days
)

// slowness is the delay of an answer on a slow link.
const slowness = 350 * time.Millisecond

// damagedPercent is the percentage of Kafka's answers that are garbled or ask for pauses.
const damagedPercent = 30

// tcpRelay forwards connections to a server. Connections of other servers, its replica and
// sentinels, pass unchanged in every mode. A replica that took garbage for data would keep it
// after the fault, and a sentinel could be sent to the port of an unrelated process.
type tcpRelay struct {
	*testenv.Relay
	garbler *testenv.Garbler // garbler of Kafka's answers; if nil, any bytes are changed

	mu  sync.Mutex
	rng *rand.Rand // source of garbage
}

// peers are parts of the first commands of other servers: of a replica, and of a sentinel, which
// sends its name.
var peers = [][]byte{[]byte("\r\nPSYNC\r\n"), []byte("\r\nsentinel-")}

func isPeer(question []byte) bool {
	return slices.ContainsFunc(peers, func(p []byte) bool { return bytes.Contains(question, p) })
}

// newTCPRelay returns a relay to a server. A relay to Kafka has a garbler, which knows where
// answers begin and end.
func newTCPRelay(t testing.TB, target string, seed uint64, garbler *testenv.Garbler) *tcpRelay {
	config := testenv.RelayConfig{Garbler: garbler}
	if garbler == nil {
		config.Spare = isPeer
	}
	return &tcpRelay{Relay: testenv.NewRelayWith(t, target, config), garbler: garbler, rng: rand.New(rand.NewPCG(seed, 1))}
}

// setMode changes the mode.
func (r *tcpRelay) setMode(m mode) {
	state, delay, change := testenv.LinkUp, time.Duration(0), (func([]byte) []byte)(nil)
	if r.garbler != nil {
		r.garbler.Stop()
	}
	switch m {
	case through:
	case cut:
		state = testenv.LinkCut
	case silent:
		state = testenv.LinkSilent
	case slow:
		delay = slowness
	case garbled:
		if r.garbler == nil {
			change = r.garble
		} else {
			r.garbler.Start(damagedPercent)
		}
	case throttled:
		r.garbler.StartThrottling(damagedPercent)
	}
	r.Delay(delay)
	r.ChangeAnswers(change)
	r.Set(state)
}

func (r *tcpRelay) garble(answer []byte) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range 1 + len(answer)/32 {
		answer[r.rng.IntN(len(answer))] = byte(r.rng.Uint32())
	}
	return answer
}

// udpRelay forwards packets of counts from one instance to an aggregator.
type udpRelay struct {
	*testenv.UDPRelay

	mu     sync.Mutex
	offset time.Duration // offset of the sender's clock, as the aggregator sees it
	line   []byte        // a count of the sample key
}

// newUDPRelay returns a relay to target. It keeps the first line that contains sample.
func newUDPRelay(t testing.TB, target, sample string) *udpRelay {
	r := new(udpRelay)
	r.UDPRelay = testenv.NewUDPRelay(t, func(packet []byte, send func([]byte)) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.line == nil {
			for line := range bytes.Lines(packet) {
				if bytes.Contains(line, []byte(sample)) {
					r.line = bytes.Clone(bytes.TrimSpace(line))
				}
			}
		}
		send(testenv.ShiftClock(packet, r.offset))
	}, target)
	return r
}

func (r *udpRelay) setOffset(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.offset = d
}

// sampleLine returns the line that contains the sample, or nil until one has come.
func (r *udpRelay) sampleLine() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.line
}
