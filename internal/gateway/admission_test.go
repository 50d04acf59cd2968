package gateway

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Connections that say nothing make room, the oldest first, and those that speak stay.
func TestAdmission(t *testing.T) {
	a := NewAdmission(2, nil)
	admit := func(want AdmitResult) *Admitted {
		t.Helper()
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		c, got := a.Admit(near)
		if got != want || (c != nil) != (want == AdmitOK) {
			t.Fatalf("%v, %v, want %v", c, got, want)
		}
		return c
	}
	isClosed := func(c *Admitted) bool { return c.SetDeadline(time.Time{}) != nil }
	speaks := admit(AdmitOK)
	speaks.Settle()
	first := admit(AdmitOK)
	second := admit(AdmitOK)
	if !isClosed(first) || isClosed(second) || isClosed(speaks) {
		t.Errorf("closed: %v, %v, %v; want the first that says nothing alone", isClosed(first), isClosed(second), isClosed(speaks))
	}
	first.Settle() // too late
	first.Close()
	second.Settle()
	second.Settle()
	admit(AdmitFull)
	if s := a.Stats(); s != (AdmissionStats{Connections: 2, Accepted: 3, Full: 1, Displaced: 1}) {
		t.Errorf("%+v", s)
	}
	second.Close()
	second.Close()
	admit(AdmitOK).Close()
	speaks.Close()
	if s := a.Stats(); s.Connections != 0 || s.Accepted != 4 || a.waiting.Len() != 0 {
		t.Errorf("%+v, %d wait", s, a.waiting.Len())
	}

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	a = NewAdmission(1, Peers{netip.MustParsePrefix("192.0.2.0/24")})
	if _, got := a.Admit(client); got != AdmitStranger || a.Stats().Strangers != 1 {
		t.Errorf("%v, %+v", got, a.Stats())
	}
}
