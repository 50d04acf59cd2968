package hotkeys

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hotparam/hotparam/internal/testenv"
)

// A master that hangs and whose place another has taken may be asked for the map of the
// cluster, like any node: clients find the other one soon all the same.
func TestClientFindsTheSuccessorOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	set := testenv.RedisCluster(t)
	former := set.Master(testLayout.Hot)
	write := func(client redis.UniversalClient) error {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		return client.Set(ctx, testLayout.Hot, "written", 0).Err()
	}
	const clients = 16 // each asks the nodes in an order of its own
	var (
		writing sync.WaitGroup
		found   [clients]time.Time
	)
	for i := range found {
		client := clientOf(t, ClientConfig{URL: set.URL()})
		must(t, write(client))
		writing.Go(func() {
			for write(client) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			for write(client) != nil && t.Context().Err() == nil {
				time.Sleep(10 * time.Millisecond)
			}
			found[i] = time.Now()
		})
	}
	former.Pause()
	set.AwaitFailover(testLayout.Hot, former)
	promoted := time.Now()
	writing.Wait()
	for i, at := range found {
		if late := at.Sub(promoted); late > 2*time.Second {
			t.Errorf("client %d found the new master after %v", i, late.Round(time.Millisecond))
		}
	}
}
