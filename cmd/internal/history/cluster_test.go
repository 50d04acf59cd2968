package history

import (
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A cluster has all keys of a namespace on one node. When that node dies, seconds wait until another
// one has taken over, and none is missing. Its memory decides whether anything is written.
func TestRedisCluster(t *testing.T) {
	t.Parallel()
	set := testenv.RedisCluster(t)
	s, err := NewStore(testClient(t, set.URL()), "shop")
	must(t, err)
	f := newTraffic(10)
	w := testWriter(s, nil)
	const from, seconds = epoch0 + 30, 200
	f.run(t, w, from, seconds)
	f.check(t, read(t, s, from, from+seconds, 1000))

	master := set.Master(s.owners)
	node := testClient(t, master.URL())
	must(t, node.ConfigSet(t.Context(), "maxmemory", "2000000").Err()) // an empty server uses about as much
	w.step(t.Context())
	if w.Stats().Paused == "" {
		t.Errorf("the node with the history is full, and it goes on: %+v", w.Stats())
	}
	must(t, node.ConfigSet(t.Context(), "maxmemory", "0").Err())
	w.step(t.Context())
	master.Kill()
	set.AwaitFailover(s.owners, master)
	for i := range int64(20) {
		w.Add(f.second(from + seconds + i))
	}
	deadline := time.Now().Add(testenv.Patience)
	for w.step(t.Context()); w.Stats().Failing != ""; w.step(t.Context()) {
		if w.retry = (time.Time{}); time.Now().After(deadline) {
			t.Fatal(w.Stats().Failing)
		}
		time.Sleep(50 * time.Millisecond)
	}
	v := read(t, s, from, from+seconds+20, 1000)
	f.check(t, v)
	if len(v.Gaps) != 0 {
		t.Errorf("gaps %v", v.Gaps)
	}
	f.check(t, read(t, s, from, from+seconds+20, 7))
	if done, err := s.Forget(t.Context(), "q=3", time.Hour); err != nil || done.Removed == 0 {
		t.Errorf("%+v, %v", done, err)
	}
}
