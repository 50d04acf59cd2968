package claims

import (
	"math/rand/v2"
	"strconv"
)

// KeyEvent is N occurrences of a key at an instance.
type KeyEvent struct {
	Key      int32
	Instance uint16
	N        uint16
}

// EventStream is the input of a run, on its own clock: nanoseconds since 1970.
//
// Keys are numbers. Those below Dense may come any number of times. Those from Dense on come once
// each, with N = 1, in the order of their numbers.
type EventStream interface {
	// Span returns the time at which the first event can come, and the time by which the last has
	// come.
	Span() (from, to int64)
	Dense() int32
	// Next appends the events in [from, to) to dst. Each call continues where the last one ended.
	Next(from, to int64, dst []KeyEvent) []KeyEvent
	// Quiet returns a time before which no event comes, given that all events before from
	// were taken.
	Quiet(from int64) int64
	// AppendText appends a key's canonical text. ID parses it.
	AppendText(dst []byte, key int32) []byte
	ID(text []byte) (key int32, ok bool)
}

// numbered provides the texts of generated keys.
type numbered struct{}

const numberedPrefix = "GET /search?q="

func (numbered) AppendText(dst []byte, key int32) []byte {
	return strconv.AppendInt(append(dst, numberedPrefix...), int64(key), 10)
}

func (numbered) ID(text []byte) (int32, bool) {
	if len(text) <= len(numberedPrefix) || string(text[:len(numberedPrefix)]) != numberedPrefix {
		return 0, false
	}
	n := int64(0)
	for _, c := range text[len(numberedPrefix):] {
		if c < '0' || c > '9' || n > 1<<31 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return int32(n), n < 1<<31
}

// second is one second of a stream's clock.
const second = int64(1e9)

// epoch is the time at which generated streams begin. It lies inside a pane of every width.
const epoch = 1_700_000_000*second + 300_000_000

// component is a part of a generated stream.
type component struct {
	rate     float64                                    // events per second
	poisson  bool                                       // random intervals instead of even ones
	key      func(r *rand.Rand, instant, i int64) int32 // key of event i, which comes at or soon after the instant; or none. If nil, each event has its own key
	instance func(r *rand.Rand, instant int64) int      // the instance; if nil, any, evenly
	active   func(instant int64) bool                   // reports whether the part is active; if nil, always
	events   int64                                      // events so far
	next     float64                                    // time of the next event if random, in seconds from the start
}

// none as a key means that no event comes.
const none = -1

// generated is a stream of parts.
type generated struct {
	numbered
	length     int64
	dense      int32
	instances  int
	random     *rand.Rand
	components []component
	unique     int32
}

func (g *generated) Span() (from, to int64) { return epoch, epoch + g.length }
func (g *generated) Dense() int32           { return g.dense }
func (g *generated) Quiet(from int64) int64 { return from }

func (g *generated) Next(from, to int64, dst []KeyEvent) []KeyEvent {
	from, to = max(0, from-epoch), min(g.length, to-epoch)
	if from >= to {
		return dst
	}
	for i := range g.components {
		p := &g.components[i]
		for range p.due(g.random, from, to) {
			n := p.events
			p.events++
			if p.active != nil && !p.active(from) {
				continue
			}
			e := KeyEvent{N: 1}
			if p.instance != nil {
				e.Instance = uint16(p.instance(g.random, from))
			} else {
				e.Instance = uint16(g.random.IntN(g.instances))
			}
			if p.key != nil {
				if e.Key = p.key(g.random, from, n); e.Key == none {
					continue
				}
			} else {
				e.Key = g.dense + g.unique
				g.unique++
			}
			dst = append(dst, e)
		}
	}
	return dst
}

// due returns the number of the part's events in [from, to), in nanoseconds from the start.
func (p *component) due(r *rand.Rand, from, to int64) int64 {
	if !p.poisson {
		return int64(p.rate*float64(to)/1e9) - int64(p.rate*float64(from)/1e9)
	}
	n := int64(0)
	for p.next < float64(to)/1e9 {
		if p.next >= float64(from)/1e9 {
			n++
		}
		p.next += r.ExpFloat64() / p.rate
	}
	return n
}
