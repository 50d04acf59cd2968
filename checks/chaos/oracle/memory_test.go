package oracle

import (
	"strings"
	"testing"
	"time"
)

func TestMemory(t *testing.T) {
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	span := func(from, to float64) Span { return Span{at(from), at(to)} }
	const target = "/x"
	for _, test := range []struct {
		name    string
		process string
		run     Span
		asked   float64
		made    Request
		before  func(m *Memory, stalls *Stalls)
		want    string
	}{
		{"fresh", "a", span(10, 10.1), 11, Request{}, nil, ""},
		{"another target", "a", span(10, 10.1), 11, Request{Target: "/y"}, nil, "made for"},
		{"another value of vary", "a", span(10, 10.1), 11, Request{Target: target, Vary: "de"}, nil, "made for"},
		{"of a user", "a", span(10, 10.1), 11, Request{Target: target, User: "alice"}, nil, "made for"},
		{"as old as it may be", "a", span(10, 10.1), 14.2, Request{}, nil, ""},
		{"too old", "a", span(10, 10.1), 14.4, Request{}, nil, "old"},
		{"too old, and the machine stood still", "a", span(10, 10.1), 14.4, Request{}, func(_ *Memory, stalls *Stalls) { stalls.Add(span(12, 12.1)) }, ""},
		{"too old for a process with other rules", "b", span(10, 10.1), 11.4, Request{}, nil, "old"},
		{"older than a reload", "a", span(10, 10.1), 11, Request{}, func(m *Memory, _ *Stalls) { m.Hold("a", at(9), at(10.5))(at(10.6)) }, "a reload"},
		{"older than a reload that changes nothing", "a", span(10, 10.1), 11, Request{}, func(m *Memory, _ *Stalls) { m.Hold("a", at(4), at(10.5))(at(10.6)) }, ""},
		{"during a reload", "a", span(10, 10.1), 10.55, Request{}, func(m *Memory, _ *Stalls) { m.Hold("a", at(9), at(10.5))(at(10.6)) }, ""},
		{"older than the reload of another", "a", span(10, 10.1), 11, Request{}, func(m *Memory, _ *Stalls) { m.Hold("b", at(9), at(10.5))(at(10.6)) }, ""},
		{"kept by the rules before", "a", span(10.7, 10.8), 11.5, Request{}, func(m *Memory, _ *Stalls) { m.Hold("a", at(0.1), at(10.5))(at(10.6)) }, "old"},
		{"changed there", "a", span(10, 10.1), 10.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("a", target, span(10.2, 10.3)) }, "a changed it"},
		{"changed there while it was made", "a", span(10, 10.3), 10.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("a", target, span(10.1, 10.2)) }, "a changed it"},
		{"made while it was changed there", "a", span(10.1, 10.3), 10.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("a", target, span(10, 10.2)) }, ""},
		{"another target changed", "a", span(10, 10.1), 10.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("a", "/y", span(10.2, 10.3)) }, ""},
		{"changed elsewhere, just now", "a", span(10, 10.1), 11.2, Request{}, func(m *Memory, _ *Stalls) { m.Change("b", target, span(10.2, 10.3)) }, ""},
		{"changed elsewhere", "a", span(10, 10.1), 11.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("b", target, span(10.2, 10.3)) }, "b changed it"},
		{"changed elsewhere, and the machine stood still", "a", span(10, 10.1), 11.4, Request{}, func(m *Memory, stalls *Stalls) {
			m.Change("b", target, span(10.2, 10.3))
			stalls.Add(span(10.4, 10.5))
		}, ""},
		{"changed by who keeps no answers", "a", span(10, 10.1), 11.4, Request{}, func(m *Memory, _ *Stalls) {
			m.Hold("b", NotKept, at(9))(at(9))
			m.Change("b", target, span(10.2, 10.3))
		}, ""},
		{"all changed by an operator", "a", span(10, 10.1), 11.4, Request{}, func(m *Memory, _ *Stalls) { m.Change("", "", span(10.2, 10.3)) }, "an operator"},
		{"in a fault of the other", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("b", false, at(9))(at(12.5))
			m.Change("b", target, span(10.2, 10.3))
		}, ""},
		{"after a fault of the other", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("b", false, at(9))(at(11.5))
			m.Change("b", target, span(10.2, 10.3))
		}, "b changed it"},
		{"lost in a fault of the other", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("b", true, at(9))(at(11.5))
			m.Change("b", target, span(10.2, 10.3))
		}, ""},
		{"in a fault of all that has not ended", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("", false, at(11))
			m.Change("b", target, span(10.2, 10.3))
		}, ""},
		{"changed there in a fault of all", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("", true, at(9))
			m.Change("a", target, span(10.2, 10.3))
		}, "a changed it"},
		{"in a fault of a third", "a", span(10, 10.1), 12, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("c", false, at(9))
			m.Change("b", target, span(10.2, 10.3))
		}, "b changed it"},
		{"one fault after the other", "a", span(10, 10.1), 13, Request{}, func(m *Memory, _ *Stalls) {
			m.Fault("b", false, at(9))(at(12))
			m.Fault("a", false, at(11.9))(at(13.5))
			m.Change("b", target, span(10.2, 10.3))
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stalls Stalls
			m := &Memory{Spread: time.Second, Slack: at(0.2)}
			m.Hold("a", at(4), 0)(0)
			m.Hold("b", at(1), 0)(0)
			if test.before != nil {
				test.before(m, &stalls)
			}
			s := Served{Process: test.process, Asked: Request{Target: target}, Span: span(test.asked, test.asked+0.01), Made: test.made, Run: test.run}
			if s.Made.Target == "" {
				s.Made = s.Asked
			}
			m.Answered(s)
			if v := m.Check(s.To+stallDelay-1, &stalls); v != nil {
				t.Errorf("judged before all is known: %v", v)
			}
			v := m.Check(s.To+stallDelay, &stalls)
			if (v != nil) != (test.want != "") || v != nil && !strings.Contains(v.Text, test.want) {
				t.Errorf("got %v, want %q", v, test.want)
			}
			if v := m.Check(s.To+2*stallDelay, &stalls); v != nil {
				t.Errorf("reported twice: %v", v)
			}
		})
	}
}
