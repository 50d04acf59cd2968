package interop

import (
	"testing"

	"github.com/hotparam/hotparam/checks/real"
	"github.com/hotparam/hotparam/internal/wire"
)

func TestProducersInOtherLanguages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	k := real.Kafka(t, real.KafkaConfig{}) // one for all
	t.Run("a key's partition", func(t *testing.T) { testPartitions(t, k) })
	k.CreateTopic(wire.DefaultTopic, 12, 1, nil)
	t.Run("a key's counts", func(t *testing.T) { testCounts(t, k) })
}
