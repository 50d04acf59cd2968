package semaphore

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/rules"
)

// semaphoreModel is a simple model of one key of a semaphore: a list that is sorted and walked at
// each step.
type semaphoreModel struct {
	unfair        bool
	permits, held int64
	line          []*modelWaiter
	arrivals      int
}

type modelWaiter struct {
	real    *waiter
	class   int
	arrival int
}

func (m *semaphoreModel) sort() {
	slices.SortFunc(m.line, func(a, b *modelWaiter) int {
		order := a.arrival - b.arrival
		if m.unfair {
			order = -order
		}
		return cmp.Or(a.class-b.class, order)
	})
}

// serve returns the waiters that get permits now.
func (m *semaphoreModel) serve() (served []*modelWaiter) {
	m.sort()
	for len(m.line) > 0 && m.held < m.permits {
		m.held++
		served = append(served, m.line[0])
		m.line = m.line[1:]
	}
	return served
}

func (m *semaphoreModel) passes(ask *Request) bool {
	return m.held < m.permits && !slices.ContainsFunc(m.line, func(w *modelWaiter) bool {
		return w.class < ask.Class || w.class == ask.Class && !m.unfair
	})
}

func isReady(w *waiter) bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// For any requests and releases, a key serves the model's waiters in the model's order. It never
// grants more permits than there are, and released permits are free again.
func TestSemaphoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &semaphoreModel{unfair: rapid.Bool().Draw(rt, "unfair"), permits: 3}
		s := New(Config{Unfair: m.unfair})
		st := &s.stripes[0]
		var leases []Lease
		var released []Lease // again and again
		granted := func(s *slot) { leases = append(leases, Lease{s, s.id}) }
		// settle lets the model serve, and checks that the semaphore served the same waiters.
		settle := func() {
			for _, w := range m.serve() {
				if !isReady(w.real) || w.real.lease == nil {
					rt.Fatalf("%+v is not served", w)
				}
				granted(w.real.lease)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				ask := &Request{
					Permits: rapid.SampledFrom([]int64{m.permits, m.permits, m.permits, 1, 3, 6}).Draw(rt, "permits"),
					Class:   rapid.IntRange(0, 3).Draw(rt, "class"),
					Queue:   rapid.IntRange(0, 6).Draw(rt, "queue"),
					Within:  time.Duration(rapid.IntRange(0, 3).Draw(rt, "within")) * time.Hour,
				}
				var d rules.Decision
				l, w := st.acquire("k", ask, &d)
				m.permits = ask.Permits
				settle()
				switch {
				case m.passes(ask):
					m.held++
					if l == nil || d.Remaining != m.permits-m.held {
						rt.Fatalf("%+v: %+v, want it to pass", ask, d)
					}
					granted(l)
				case ask.Within > 0 && len(m.line) < ask.Queue:
					if w == nil {
						rt.Fatalf("%+v: %+v, want it to wait", ask, d)
					}
					m.arrivals++
					m.line = append(m.line, &modelWaiter{real: w, class: ask.Class, arrival: m.arrivals})
				case l != nil || w != nil || d.Allowed || d.Remaining != max(0, m.permits-m.held):
					rt.Fatalf("%+v: %+v, want it denied", ask, d)
				}
			},
			"release": func(rt *rapid.T) {
				if len(leases) == 0 {
					rt.Skip("nothing is held")
				}
				i := rapid.IntRange(0, len(leases)-1).Draw(rt, "lease")
				m.held--
				leases[i].Release()
				released = append(released, leases[i])
				leases = slices.Delete(leases, i, i+1)
				settle()
			},
			"release again": func(rt *rapid.T) {
				if len(released) == 0 {
					rt.Skip("nothing was released")
				}
				rapid.SampledFrom(released).Draw(rt, "lease").Release()
			},
			"leave": func(rt *rapid.T) {
				if len(m.line) == 0 {
					rt.Skip("nobody waits")
				}
				i := rapid.IntRange(0, len(m.line)-1).Draw(rt, "waiter")
				w := m.line[i].real
				m.line = slices.Delete(m.line, i, i+1)
				if rapid.Bool().Draw(rt, "late") {
					st.denyLate(w, &Request{Permits: m.permits})
				} else {
					st.cancel(w)
				}
				settle()
			},
			"cancel at the handover": func(rt *rapid.T) {
				m.sort()
				if len(m.line) == 0 || len(leases) == 0 || m.held > m.permits {
					rt.Skip("nobody would be served")
				}
				w := m.line[0]
				m.held--
				leases[0].Release()
				released = append(released, leases[0])
				leases = leases[1:]
				settle()
				got := Lease{w.real.lease, w.real.lease.id}
				released = append(released, got) // by cancel
				leases = slices.DeleteFunc(leases, func(l Lease) bool { return l == got })
				st.cancel(w.real)
				m.held--
				settle()
			},
			"drain": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "seldom") > 0 {
					rt.Skip("not now")
				}
				s.Drain()
				s.Resume()
				for _, w := range m.line {
					if !isReady(w.real) || w.real.lease != nil {
						rt.Fatalf("%+v still waits", w)
					}
				}
				m.line = nil
			},
			"": func(rt *rapid.T) {
				for _, w := range m.line {
					if isReady(w.real) {
						rt.Fatalf("%+v was served or denied out of turn", w)
					}
				}
				keys := int64(0)
				if m.held > 0 {
					keys = 1
				}
				if got := s.Stats(); got.Held != m.held || got.Waiting != int64(len(m.line)) || got.Keys != keys {
					rt.Fatalf("Stats() = %+v, want %d held, %d waiting", got, m.held, len(m.line))
				}
			},
		})
	})
}
