package interop

import (
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/wire"
)

// A key must live in one partition, whichever program counted it, so wire.Partition must treat a
// record's key as other producers do.
func testPartitions(t *testing.T, k *real.KafkaCluster) {
	keys := someKeys(10_000)
	var lines strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&lines, "%x\n", key)
	}
	for i := range languages {
		l := &languages[i]
		t.Run(l.name, func(t *testing.T) {
			var topics []string
			for _, n := range []int{3, 12, 37} {
				topic := fmt.Sprintf("keys-%d-%d", i, n)
				k.CreateTopic(topic, n, 1, nil)
				topics = append(topics, topic)
			}
			l.runKeys(t, k, lines.String(), topics...)
			for j, n := range []int{3, 12, 37} {
				checkPartitions(t, k, topics[j], n, keys)
			}
		})
	}
}

// someKeys returns different keys, as lines hold them, and some of arbitrary bytes, for each
// length that murmur2 treats differently.
func someKeys(n int) [][]byte {
	random := rand.NewChaCha8([32]byte{5})
	pick := rand.New(random)
	var keys [][]byte
	seen := make(map[string]bool)
	for len(keys) < n {
		key := make([]byte, pick.IntN(9))
		_, _ = random.Read(key)
		if len(keys)%2 == 0 {
			text := make([]byte, pick.IntN(60))
			_, _ = random.Read(text)
			key = wire.Plain.Append(nil, append([]byte("GET /search?q="), text...))
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			keys = append(keys, key)
		}
	}
	return keys
}

// checkPartitions reads the topic, which must hold each key once and in the partition that we
// would choose.
func checkPartitions(t *testing.T, k *real.KafkaCluster, topic string, n int, keys [][]byte) {
	t.Helper()
	missing := make(map[string]bool, len(keys))
	for _, key := range keys {
		missing[string(key)] = true
	}
	client := k.Client(kgo.ConsumeTopics(topic))
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for len(missing) > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatalf("%s: %d keys are missing: %v", topic, len(missing), err)
		}
		for r := range fetches.RecordsAll() {
			if !missing[string(r.Key)] {
				t.Fatalf("%s: key %x came twice, or was not sent", topic, r.Key)
			}
			delete(missing, string(r.Key))
			if want := wire.Partition(r.Key, n); r.Partition != want {
				t.Fatalf("%s: key %s is in partition %d of %d, want %d", topic, hex.EncodeToString(r.Key), r.Partition, n, want)
			}
		}
	}
}
