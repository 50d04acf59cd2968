package statsdsource

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Rules come and go while lines arrive on several connections. No line of a rule that stays is
// lost or counted twice, whatever its number among the rules.
func TestReloadLosesNoCount(t *testing.T) {
	const conns, packets, keys = 3, 400, 7
	out := newRecorder()
	kept := hotRule("kept", 1, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	s, err := New(ctx, Config{Rules: testRules(kept), Publisher: out, Listen: []string{"tcp://127.0.0.1:0", "127.0.0.1:0"}, Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ran; err != nil {
			t.Error(err)
		}
	}()
	var sending sync.WaitGroup
	for range conns {
		sending.Go(func() {
			conn, err := net.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for i := range packets {
				var lines []byte
				for k := range keys {
					lines = fmt.Appendf(lines, "shop.kept.hot_param.q=%d:%d|c\nshop.other.hot_param.q=%d:1|c\n", k, k+1, i)
				}
				if _, err := conn.Write(lines); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sent := make(chan struct{})
	go func() { sending.Wait(); close(sent) }()
	limited := kept
	limited.Limit = &rules.Limit{Quota: rules.Quota{Rate: rules.Rate{N: 5, Per: time.Second}, Burst: 5}, Mode: rules.ModeLimit}
	share := hotRule("other", 100, time.Second)
	share.Hot[0].Kind, share.Hot[0].Factor = rules.Share, rules.Percent(50)
	versions := []*rules.Rules{testRules(limited), testRules(hotRule("other", 1, time.Second), kept), testRules(share, limited, hotRule("more", 1, time.Hour))}
	for i, done := 0, false; !done; i++ {
		s.Reload(versions[i%len(versions)])
		select {
		case <-sent:
			done = true
		case <-time.After(2 * time.Millisecond):
		}
	}
	hot := make(map[rules.Key]published.Hot)
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for _, rules := range []*rules.Rules{testRules(kept), testRules(limited)} { // another limit is published, with the present counts
			s.Reload(rules)
		}
		hot = out.hot()
		if hot[rules.Key{Rule: "kept", Text: "q=6"}].Low >= conns*packets*keys {
			break
		}
	}
	for k := range int64(keys) {
		h := hot[rules.Key{Rule: "kept", Text: fmt.Sprint("q=", k)}]
		if want := conns * packets * (k + 1); h.Low != want || h.High != published.Unknown || h.Limit.N != 5 {
			t.Errorf("q=%d counts %d to %d, limit %v, sent were %d", k, h.Low, h.High, h.Limit, want)
		}
	}
	if len(hot) != keys {
		t.Errorf("%d keys are hot", len(hot))
	}
}
