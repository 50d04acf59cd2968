package kafkaclient

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// AskTopic returns a topic's metadata, with the permitted operations, and the brokers of the
// cluster.
func AskTopic(ctx context.Context, to kmsg.Requestor, topic string) (*kmsg.MetadataResponseTopic, []kmsg.MetadataResponseBroker, error) {
	request := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = &topic
	request.Topics = append(request.Topics, t)
	request.IncludeTopicAuthorizedOperations = true
	answer, err := request.RequestWith(ctx, to)
	if err != nil {
		return nil, nil, err
	}
	for i := range answer.Topics {
		if t := &answer.Topics[i]; t.Topic != nil && *t.Topic == topic {
			return t, answer.Brokers, nil
		}
	}
	return nil, nil, fmt.Errorf("kafka: the answer of the broker lacks topic %s; is it Kafka?", topic)
}

// May reports whether an operation is permitted, or not known to be refused, by the rights that a
// broker reported.
func May(rights int32, op kmsg.ACLOperation) bool {
	const unset = -1 << 31 // left unset, or 0, by brokers older than 2.3
	return rights == unset || rights == 0 || rights&(1<<op) != 0
}
