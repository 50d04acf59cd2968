package kafkasink

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/hotparam/hotparam/internal/kafkaclient"
)

var (
	errFull      = errors.New("kafka: the sink's buffer is full: the brokers are unavailable or too slow")
	errClosed    = errors.New("kafka: the sink is closed")
	errAbandoned = errors.New("kafka: the client did not stop, and did not report the record")
	errTooOld    = fmt.Errorf("no broker took the record within %v", giveUp)
)

// permanent reports whether a retry cannot succeed.
func permanent(err error) bool {
	return kafkaclient.IsOneOf(err,
		kerr.MessageTooLarge, kerr.InvalidTopicException, kerr.InvalidTimestamp,
		kerr.InvalidRequiredAcks, kerr.UnsupportedVersion, kerr.UnsupportedForMessageFormat,
		kerr.PolicyViolation, kerr.InvalidRecord, kerr.UnsupportedCompressionType,
		kerr.TopicAuthorizationFailed, kerr.ClusterAuthorizationFailed)
}

// outOfStep reports whether an idempotent producer and a broker disagree about the next
// sequence number or the producer's id. The producer then refuses all records.
func outOfStep(err error) bool {
	return kafkaclient.IsOneOf(err, kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.ProducerFenced,
		kerr.UnknownProducerID, kerr.InvalidProducerIDMapping)
}
