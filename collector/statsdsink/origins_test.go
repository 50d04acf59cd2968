package statsdsink

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/internal/wire"
	"github.com/hotparam/hotparam/rules"
)

// maxOrigins is how many origins a collector sends at a time.
const maxOrigins = 500

func TestOriginsGoOutOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{{ID: "r", Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 10, Per: time.Second})}}}}
		out := &packets{}
		sink, err := New(Config{Rules: rules, Sender: out, Instance: "i"})
		if err != nil {
			t.Fatal(err)
		}
		c := newCollector(t, collector.Config{Sink: sink, Rules: rules})
		asked := 0
		c.OnOrigins(func(tell func(collector.KeyOrigin) bool) {
			asked++
			reported := 0
			for tell(collector.KeyOrigin{Rule: []byte("r"), Text: []byte("GET /s?q=1"), Kind: wire.Caller, Name: []byte("10.0.0.7"), N: 3}) {
				reported++
			}
			if reported != maxOrigins-1 {
				t.Errorf("%d origins were taken and more wanted, want %d", reported, maxOrigins-1)
			}
			tell(collector.KeyOrigin{Rule: []byte("unknown"), Text: []byte("x"), Kind: wire.Caller, Name: []byte("y"), N: 1})
		})
		run(t, c, func() { time.Sleep(3*time.Second + 50*time.Millisecond) })
		if asked < 3 || asked > 4 {
			t.Errorf("asked %d times in 3 s", asked)
		}
		lines := 0
		for _, p := range out.all {
			if len(p) > wire.MaxPacket {
				t.Errorf("a packet has %d bytes", len(p))
			}
			for line := range strings.SplitSeq(p, "\n") {
				if line == "shop.r.hot_origin.GET%20/s?q=1:3|c|#c:10%2E0%2E0%2E7" {
					lines++
				} else if !wire.IsMeta([]byte(line)) {
					t.Fatalf("the line %q", line)
				} else if _, err := wire.ParseMeta([]byte(line)); err != nil {
					t.Fatalf("the line %q: %v", line, err)
				}
			}
		}
		if lines != asked*maxOrigins {
			t.Errorf("%d origins were sent, want %d", lines, asked*maxOrigins)
		}
	})
}
