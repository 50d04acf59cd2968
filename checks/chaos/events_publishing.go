package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// publishingKinds are floods.
var publishingKinds = []eventKind{
	{name: "flood-hot-keys", weight: 2, scenarios: []string{"publishing", "floods"}, deployment: "statsd", exclusive: "flood", shortest: 4 * time.Second, longest: 8 * time.Second, begin: floodHotKeys},
	{name: "flood-nonsense", weight: 1, scenarios: []string{"publishing", "floods"}, deployment: "statsd", exclusive: "flood", shortest: 2 * time.Second, longest: 4 * time.Second, begin: floodNonsense},
	{name: "flood-idle", weight: 1, scenarios: []string{"floods"}, exclusive: "flood", shortest: 8 * time.Second, longest: 12 * time.Second, begin: floodIdle},
	{name: "flood-published", weight: 1, scenarios: []string{"publishing", "floods"}, exclusive: "flood", shortest: 2 * time.Second, longest: 4 * time.Second, begin: floodPublished},
}

// flood runs f until the returned function is called.
func flood(f func(ctx context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// dialCounts returns sockets to all aggregators.
func (r *run) dialCounts() (conns []net.Conn) {
	for _, g := range r.aggregators {
		conn, err := net.Dial("udp", g.listen)
		if err != nil {
			r.Fatal(err)
		}
		conns = append(conns, conn)
	}
	return conns
}

func send(conns []net.Conn, packet []byte) {
	for _, c := range conns {
		_, _ = c.Write(packet) // the packet may be lost, as UDP allows
	}
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		c.Close()
	}
}

// hotKeys is the number of other keys that become hot each second of a flood.
const hotKeys = 4000

// floodHotKeys makes thousands of other keys hot, each hotter than the steady one.
func floodHotKeys(r *run, e *plannedFault) func() {
	over := r.judge.beginFault(effect{excuses: mayMissHotKeys})
	conns, serial := r.dialCounts(), 0
	const pace = 10 * time.Millisecond
	end := flood(func(ctx context.Context) {
		testenv.Every(ctx, pace, func(int) {
			var packet []byte
			for range hotKeys * int(pace/time.Millisecond) / 1000 {
				serial++
				packet = r.appendCount(packet, fmt.Sprintf("q=flood-%d-%d", e.seed%1000, serial), 20*hotThreshold)
				if len(packet) > 1200 {
					send(conns, packet)
					packet = packet[:0]
				}
			}
			send(conns, packet)
		})
	})
	return func() {
		end()
		closeAll(conns)
		over()
	}
}

// appendCount appends a line that counts a key. It derives the line from one that an instance
// sent for the steady key, and appends nothing until there is one.
func (r *run) appendCount(packet []byte, key string, n int) []byte {
	sample := r.apis[0].counts[0].sampleLine()
	i := bytes.LastIndexByte(sample, ':')
	if i < 0 {
		return packet
	}
	name := bytes.Replace(sample[:i], []byte(steadyKey), []byte(key), 1)
	return fmt.Appendf(append(packet, name...), ":%d|c\n", n)
}

// waves makes another key hot every second and a half, so that the published set keeps changing.
// No request asks for these keys.
func (r *run) waves(ctx context.Context) {
	conns := r.dialCounts()
	defer closeAll(conns)
	testenv.Every(ctx, 100*time.Millisecond, func(n int) {
		send(conns, r.appendCount(nil, fmt.Sprintf("q=wave-%d", n/15), hotThreshold/3))
	})
}

// floodNonsense sends packets that are not counts. Hot keys must stay hot.
func floodNonsense(r *run, e *plannedFault) func() {
	conns, rng := r.dialCounts(), e.rng()
	end := flood(func(ctx context.Context) {
		testenv.Every(ctx, 5*time.Millisecond, func(n int) {
			for range 5 {
				packet := make([]byte, 1+rng.IntN(1400))
				for i := range packet {
					packet[i] = byte(rng.Uint32())
				}
				if n%2 == 0 {
					copy(packet, "hotparam.meta:1|c|#v:1,i:x,e:1,s:1,t:1,h:1,u:0\nsearch.hot_param.")
				}
				send(conns, packet)
			}
		})
	})
	return func() {
		end()
		closeAll(conns)
	}
}

// idlers is the number of idle connections.
const idlers = 1500

// floodIdle holds silent connections to the admin port open. Health checks must still be
// answered, and the aggregator must have closed the connections by the end.
func floodIdle(r *run, e *plannedFault) func() {
	g := r.victim(e)
	over := r.judge.beginFault(effect{}) // excuses only the cost of the connections
	var conns []net.Conn
	for range idlers {
		conn, err := net.DialTimeout("tcp", g.addr, time.Second)
		if err != nil {
			break // refusing more connections is allowed
		}
		if len(conns)%2 == 0 { // the other half sends nothing at all
			_, _ = conn.Write([]byte("GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		}
		conns = append(conns, conn)
	}
	return func() {
		open := 0
		for _, c := range conns {
			_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := io.Copy(io.Discard, c); isTimeout(err) {
				open++
			}
		}
		closeAll(conns)
		over()
		r.judge.checkIdle(g.name, open)
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// floodPublished notifies the watchers of changes that did not happen.
func floodPublished(r *run, e *plannedFault) func() {
	addrs, rng := r.redis.masters(context.Background()), e.rng()
	client := redis.NewClient(&redis.Options{Addr: addrs[0], MaxRetries: -1, PoolSize: 1})
	before := r.countLoads()
	begun := r.now()
	end := flood(func(ctx context.Context) {
		testenv.Every(ctx, 2*time.Millisecond, func(int) {
			for range 4 {
				_ = client.Publish(ctx, redisName("changed"), fmt.Sprintf(`{"version":"%08x:%d"}`, rng.Uint32(), 1+rng.Int64N(1<<40))).Err() // a lost message does not matter
			}
		})
	})
	return func() {
		end()
		client.Close()
		r.judge.checkLoads(r.countLoads()-before, r.now()-begun)
	}
}
