package hotkeys

import (
	"maps"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/testenv"
)

// slowLink is a relay to a server whose answers it holds back, one read after the
// other.
type slowLink struct {
	listener net.Listener
	target   string
	delay    atomic.Int64
	work     sync.WaitGroup
}

func newSlowLink(t *testing.T, target string) *slowLink {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	l := &slowLink{listener: listener, target: target}
	ends := make(map[net.Conn]bool)
	var mu sync.Mutex
	over := false
	l.work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", l.target)
			mu.Lock()
			if err != nil || over {
				client.Close()
				if server != nil {
					server.Close()
				}
				mu.Unlock()
				continue
			}
			ends[client], ends[server] = true, true
			mu.Unlock()
			l.work.Go(func() { l.forward(server, client, false) })
			l.work.Go(func() { l.forward(client, server, true) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		over = true
		for end := range ends {
			end.Close()
		}
		mu.Unlock()
		l.work.Wait()
	})
	return l
}

func (l *slowLink) forward(to, from net.Conn, answers bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if answers && n > 0 {
			time.Sleep(time.Duration(l.delay.Load()))
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (l *slowLink) url(t *testing.T, serverURL string) string {
	u, err := url.Parse(serverURL)
	must(t, err)
	u.Host = l.listener.Addr().String()
	return u.String()
}

// Redis restarts empty and is slow from then on: 300 ms for each answer, more than
// half of a call's time. New connections come about all the same, the set is written,
// and watchers follow it.
func TestSlowAnswersAfterARestart(t *testing.T) {
	for _, lease := range []time.Duration{0, DefaultLease} {
		name := "without a lease"
		if lease > 0 {
			name = "leased"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
			l := newSlowLink(t, server.Addr())
			slow := func() string { return l.url(t, server.URL()) }
			client := clientOf(t, ClientConfig{URL: slow()})
			p := testPublisher(t, client, func(c *PublisherConfig) { c.Timeout, c.Lease = 0, lease })
			p.Publish(hots(hot(text(1), 100, 50)))
			testenv.Running(t, p.Run)
			seen := newRecorder()
			testenv.Running(t, testWatcher(t, clientOf(t, ClientConfig{URL: slow()}), seen).Run)
			seen.await(t, "the first key", has(text(1)))
			want := map[string]int64{text(1): 50}
			for round := range 3 {
				l.delay.Store(int64(300 * time.Millisecond))
				server.Restart()
				from := time.Now()
				h := hot(text(2+round), 100, 50)
				p.Publish(hots(h))
				want[h.Text] = 50
				seen.await(t, "what became hot since", func(hot map[string]hotparam.Hot) bool { return maps.Equal(limits(hot), want) })
				t.Logf("in force %v after the restart", time.Since(from).Round(time.Millisecond))
				if seen.everCooled(text(1)) {
					t.Error("a key that is hot was let go of")
				}
				wait(t, func() error {
					if s := p.Stats(); !s.Connected || s.Trouble != "" {
						return &net.OpError{Op: s.Trouble, Err: net.ErrClosed}
					}
					return nil
				})
			}
		})
	}
}
