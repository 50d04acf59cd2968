package kafkasource

import (
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/hotparam/hotparam/internal/wire"
)

// A damaged answer that names no partitions is not taken for the topic's size.
func TestTopicWithoutPartitions(t *testing.T) {
	inWorld(t, 1, 2, func(w *world) {
		begin, damaged := time.Now(), atomic.Int64{}
		w.cluster.ControlKey(int16(kmsg.Metadata), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			if time.Since(begin) > 3*time.Second {
				return nil, nil, false
			}
			damaged.Add(1)
			answer := r.ResponseKind().(*kmsg.MetadataResponse)
			host, port, _ := net.SplitHostPort(w.cluster.ListenAddrs()[0])
			number, _ := strconv.Atoi(port)
			broker := kmsg.NewMetadataResponseBroker()
			broker.Host, broker.Port = host, int32(number)
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic, topic.TopicID = kmsg.StringPtr(wire.DefaultTopic), [16]byte{1}
			answer.Brokers, answer.Topics = append(answer.Brokers, broker), append(answer.Topics, topic)
			return answer, nil, true
		})
		m := w.join()
		w.has(m, 2)
		if damaged.Load() == 0 || m.Stats().Resizes > 0 {
			w.Errorf("%d damaged answers, %+v", damaged.Load(), m.Stats())
		}
	})
}
