package kafkasource

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A broker may answer each fetch at once with an error that the client does not retry on its own.
// It is asked again with pauses, not as fast as it answers, and everything is read when it has
// recovered.
func TestPollBacksOff(t *testing.T) {
	const (
		lasts = 5 * time.Second
		spin  = 20_000 // fetches until the broker recovers; without pauses the bubble's time would stop
	)
	inWorld(t, 1, 2, func(w *world) {
		m := w.join()
		w.has(m, 2)
		ill := time.Now()
		var fetches atomic.Int64
		w.cluster.ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if time.Since(ill) > lasts || fetches.Add(1) > spin {
				return nil, nil, false
			}
			return failedFetch(r.(*kmsg.FetchRequest)), nil, true
		})
		time.Sleep(lasts)
		if n, most := fetches.Load(), 4*int64(lasts/lastPause); n == 0 || n > most {
			w.Errorf("%d fetches in %v, want 1 to %d", n, lasts, most)
		}
		if n := m.Stats().FetchErrors; n == 0 {
			w.Error("no error was counted")
		}
		defer w.instance("a", 2).runs(everywhere(2))()
		w.allHot(2)
	})
}

// failedFetch returns an answer with an error for each partition.
func failedFetch(r *kmsg.FetchRequest) kmsg.Response {
	answer := r.ResponseKind().(*kmsg.FetchResponse)
	for _, topic := range r.Topics {
		failed := kmsg.NewFetchResponseTopic()
		failed.Topic, failed.TopicID = topic.Topic, topic.TopicID
		for _, p := range topic.Partitions {
			part := kmsg.NewFetchResponseTopicPartition()
			part.Partition, part.ErrorCode = p.Partition, kerr.InvalidRecord.Code
			failed.Partitions = append(failed.Partitions, part)
		}
		answer.Topics = append(answer.Topics, failed)
	}
	return answer
}
