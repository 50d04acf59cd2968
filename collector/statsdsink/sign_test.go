package statsdsink

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
)

var signKey = []byte("0123456789abcdef0123456789abcdef")

// Each packet is signed, even a full one, and the signature does not make it longer than the limit.
// Signing costs no allocation.
func TestStatsDSignsEachPacket(t *testing.T) {
	out := &packets{}
	s := newSink(t, Config{Sender: out, Key: signKey})
	verifier := wire.NewMAC(signKey)
	longest, seq := 0, uint64(0)
	for f := range 20 {
		out.all = nil
		var counts []collector.Count
		for i := range f * 11 {
			c := count("terms", strings.Repeat("x", (f*7+i*13)%300)+fmt.Sprint(i), 3)
			if i < f*3 {
				c.Start = time.Unix(int64(f), -1e6)
			}
			counts = append(counts, c)
		}
		sent := s.Send(t.Context(), collector.Flush{Start: time.Unix(int64(f), 0), Now: time.Unix(int64(f), 1e8), Held: 1}, counts)
		if sent.Packets == 0 || sent.Failed+sent.TooLong > 0 {
			t.Fatalf("sent %+v", sent)
		}
		for _, p := range out.all {
			longest = max(longest, len(p))
			if err := verifier.Verify([]byte(p)); err != nil {
				t.Errorf("%v: %q", err, p)
			}
			line, _, _ := strings.Cut(p, "\n")
			m, err := wire.ParseMeta([]byte(line))
			if seq++; err != nil || m.Seq != seq || m.Sent == 0 {
				t.Errorf("packet %d is %+v, %v", seq, m, err)
			}
		}
	}
	out.all = nil
	s.SendOrigins(t.Context(), time.Now(), []collector.KeyOrigin{{Rule: []byte("terms"), Text: []byte("q=1"), Kind: 'r', Name: []byte("GET /s"), N: 3}})
	if len(out.all) != 1 {
		t.Fatalf("%d packets of origins", len(out.all))
	}
	line, _, _ := strings.Cut(out.all[0], "\n")
	if m, err := wire.ParseMeta([]byte(line)); err != nil || time.Since(time.Unix(0, m.Sent)).Abs() > time.Minute || verifier.Verify([]byte(out.all[0])) != nil {
		t.Errorf("origins are sent by %+v, %v", m, err)
	}
	if longest > wire.MaxPacket || longest < wire.MaxPacket-400 {
		t.Errorf("the longest packet has %d bytes, may have %d", longest, wire.MaxPacket)
	}
}

func TestStatsDRefusesBadKeys(t *testing.T) {
	for want, c := range map[string]Config{
		"31 bytes: want 32": {Key: signKey[1:]}, "0 bytes": {Key: []byte{}}, "NoMeta": {Key: signKey, NoMeta: true},
	} {
		c.Rules, c.Sender = statsdRules(), &packets{}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want an error with %q", c, err, want)
		}
	}
}
