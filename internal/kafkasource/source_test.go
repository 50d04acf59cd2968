package kafkasource

import (
	"context"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/wire"
)

func TestSourceFindsHotKeys(t *testing.T) {
	inWorld(t, 1, 4, func(w *world) {
		m := w.join()
		w.has(m, 4)
		begin := time.Now()
		stop := w.instance("a", 4).runs(map[int32][]string{2: {"q=1"}})
		w.until("the key hot", func() bool { return w.redis.hot("q=1") })
		if took := time.Since(begin); took > 600*time.Millisecond {
			w.Errorf("hot after %v, want it when 100 have come", took)
		}
		time.Sleep(6 * time.Second)
		committed, err := w.admin.FetchOffsets(context.Background(), "hotparam-shop")
		if o, ok := committed.Lookup(wire.DefaultTopic, 2); err != nil || !ok || o.At < 20 {
			w.Errorf("committed %+v, %v: want what was counted", committed, err)
		}
		if s := m.Stats(); s.CommitErrors != 0 || s.Detector.Hot != 1 || s.Decoder.Sum < 600 || s.Partitions[2].Records > 5 || s.Partitions[0].Frozen {
			w.Errorf("%+v", s)
		}
		stop()
		w.until("the key cool", func() bool { return !w.redis.hot("q=1") })
	})
}
