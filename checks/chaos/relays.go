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

// mode is what a relay does with what goes through it.
type mode int

const (
	through   mode = iota
	cut            // connections break, and new ones break at once
	silent         // connections come about and stay, and nothing comes through
	slow           // each answer comes late
	garbled        // answers have bytes changed
	throttled      // Kafka's answers ask for pauses of days
)

// slowness is how late an answer is on a slow link.
const slowness = 350 * time.Millisecond

// damagedPercent is how many of Kafka's answers are garbled, or ask for pauses.
const damagedPercent = 30

// tcpRelay forwards connections to a server. Those of other servers, its replica and
// sentinels, pass unchanged in every mode: a replica that took garbage for data would keep
// it after the fault, and a sentinel could be sent to a stranger's port.
type tcpRelay struct {
	*testenv.Relay
	garbler *testenv.Garbler // of Kafka's answers; with nil any bytes are changed

	mu  sync.Mutex
	rng *rand.Rand // for garbage
}

// peers are in the first words of other servers: of a replica, and of a sentinel, which
// gives its name.
var peers = [][]byte{[]byte("\r\nPSYNC\r\n"), []byte("\r\nsentinel-")}

func isPeer(question []byte) bool {
	return slices.ContainsFunc(peers, func(p []byte) bool { return bytes.Contains(question, p) })
}

// newTCPRelay returns a relay to a server. One to Kafka has a garbler, which knows where
// answers begin and end.
func newTCPRelay(t testing.TB, target string, seed uint64, garbler *testenv.Garbler) *tcpRelay {
	config := testenv.RelayConfig{Garbler: garbler}
	if garbler == nil {
		config.Spare = isPeer
	}
	return &tcpRelay{Relay: testenv.NewRelayWith(t, target, config), garbler: garbler, rng: rand.New(rand.NewPCG(seed, 1))}
}

// set changes the mode.
func (r *tcpRelay) set(m mode) {
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
	offset time.Duration // of the sender's clock, as the aggregator sees it
	line   []byte        // a count of the key that stands for others
}

// newUDPRelay forwards to target. Of the packets with sample in a line, it keeps the line.
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

// sampleLine returns a line of the key that stands for others; nil until one has come.
func (r *udpRelay) sampleLine() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.line
}
