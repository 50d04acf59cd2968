package kafkasource

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/testenv"
)

// After brokers' answers were damaged for a while, sources soon read all partitions again,
// whatever state their clients were in, and find the hot keys.
func TestSourcesReadAgainAfterGarbledAnswers(t *testing.T) {
	if isStartedAgain(t) {
		return
	}
	seeds := 30
	if testing.Short() {
		seeds = 2
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			garbler := testenv.NewGarbler(seed)
			inGarbledWorld(t, garbler, func(w *world) {
				const partitions = 4
				a, b := w.join(), w.join()
				w.until("two members", func() bool { return total(a, b) == partitions })
				stop := w.instance("a", partitions).runs(everywhere(partitions))
				w.allHot(partitions)
				stop()
				garbler.Start(30)
				time.Sleep(5 * time.Second)
				garbler.Stop()
				if garbler.Damaged() == 0 {
					w.Fatal("no answer was damaged")
				}
				w.client.Close() // its answers were damaged, too
				w.client = w.newClient()
				defer w.instance("b", partitions).runs(newKeys(partitions))()
				healed := time.Now()
				w.until("keys of all partitions", func() bool {
					for p := range int32(partitions) {
						if !w.redis.hot(newKeys(partitions)[p][0]) {
							return false
						}
					}
					return true
				})
				w.Logf("%d answers damaged; all is read %v later; replaced %+v and %+v", garbler.Damaged(), time.Since(healed), a.Stats().Replaced, b.Stats().Replaced)
			})
		})
	}
}

// isStartedAgain runs the test in a process of its own, where it returns false. The clock of a
// bubble can stop: a goroutine of the client waits for a mutex, which does not count as waiting,
// and the mutex is held until an answer is overdue. Such a process is ended, and the test is run
// once more.
func isStartedAgain(t *testing.T) bool {
	t.Helper()
	const (
		variable = "HOTPARAM_TEST_OF_A_PROCESS"
		still    = "[sync.Mutex.Lock, synctest bubble"
	)
	if os.Getenv(variable) == t.Name() {
		return false
	}
	args := []string{"-test.run", "^" + t.Name() + "$", "-test.timeout", "60s", "-test.v"}
	if testing.Short() {
		args = append(args, "-test.short")
	}
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), variable+"="+t.Name())
		output, err := cmd.CombinedOutput()
		switch {
		case err == nil && bytes.Contains(output, []byte("--- PASS: "+t.Name())):
			return true
		case err == nil || !bytes.Contains(output, []byte(still)):
			t.Fatalf("%v\n%s", err, output)
		}
		t.Log("the bubble's clock stood still: once more")
	}
	t.Fatal("the bubble's clock stood still in each try")
	return true
}

// newKeys returns keys that were not counted before, by partition.
func newKeys(partitions int) map[int32][]string {
	keys := make(map[int32][]string)
	for p := range int32(partitions) {
		keys[p] = []string{fmt.Sprint("new=", p)}
	}
	return keys
}

// When a broker asks a client to pause for days, the client is replaced, and nothing is counted
// twice or cools.
func TestThrottledClientIsReplaced(t *testing.T) {
	const days = 1<<31 - 1
	for key, answer := range map[kmsg.Key]func(kmsg.Response){
		kmsg.Fetch:       func(r kmsg.Response) { r.(*kmsg.FetchResponse).ThrottleMillis = days },
		kmsg.ListOffsets: func(r kmsg.Response) { r.(*kmsg.ListOffsetsResponse).ThrottleMillis = days },
		kmsg.Heartbeat:   func(r kmsg.Response) { r.(*kmsg.HeartbeatResponse).ThrottleMillis = days },
	} {
		t.Run(key.Name(), func(t *testing.T) {
			inWorld(t, 1, 2, func(w *world) {
				m := w.join()
				w.has(m, 2)
				defer w.instance("a", 2).runs(everywhere(2))()
				w.allHot(2)
				w.cluster.ControlKey(int16(key), func(r kmsg.Request) (kmsg.Response, error, bool) {
					if m.Stats().Replaced.Throttled > 0 {
						return nil, nil, false
					}
					w.cluster.KeepControl() // an answer that is not waited for any more is not obeyed
					resp := r.ResponseKind()
					answer(resp)
					return resp, nil, true
				})
				w.until("another client", func() bool { return m.Stats().Replaced.Throttled == 1 })
				w.has(m, 2)
				w.unchanged(2)
			})
		})
	}
}

func inGarbledWorld(t *testing.T, g *testenv.Garbler, test func(*world)) {
	inWorld(t, 2, 4, test, func(w *world) kfake.Opt {
		return kfake.ListenFn(func(network, addr string) (net.Listener, error) {
			l, err := w.network.Listen(network, addr)
			if err != nil {
				return nil, err
			}
			return g.Wrap(l), nil
		})
	})
}
