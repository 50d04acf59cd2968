// Package kafkasink is the collector's sink that writes to Kafka: one record for
// each partition and flush, of StatsD lines, whose headers tell whose counts they
// are and of when ([wire.RecordHead]).
//
//	sink, err := kafkasink.New(kafkasink.Config{
//		Rules:      rules,
//		Connection: kafka.Connection{Brokers: []string{"kafka-1:9092", "kafka-2:9092"}},
//	})
//	…
//	counts, err := collector.New(collector.Config{Sink: sink})
//
// # How a record travels
//
// [Sink.Send] builds the records and puts them into a queue of the sink's own; it
// waits for nothing. One goroutine, which the first Send starts and [Sink.Close]
// ends, connects, hands records to sarama's asynchronous producer and hears what
// became of them. What a record takes of the buffer is given back when it was
// delivered or given up, not before: Config.Buffer bounds all that waits and all
// that is on its way. When it is full the newest is dropped.
//
// # What is lost is told
//
// A record gets the next number of its partition when it is built, so that one
// which is dropped later leaves a gap that the aggregator sees. Counts that came
// before the partitions were known have no number; their sum goes into the next
// records as unsent. Everything is counted, by reason, in [Stats].
//
// A record is given up 10 s after it was built: until then a partition has found a
// new leader, and what is older is of little use to windows of seconds. What came
// back from the producer before that is tried again.
//
// # What a broker's answers cannot do
//
// An answer may be damaged, or the client stuck. Throttle times are capped (answers.go);
// a session in which nothing is heard of a partition's records for as long as they are
// tried, and a time-out more, is replaced by another, which gets its records. Sessions
// that do not end are few, and nothing waits for them.
//
// # Order
//
// Records of a partition come in the order of their numbers, over retries, too: on
// a connection there is one request at a time, and the producer keeps one batch of
// a partition on its way, whatever the acks. Only where it gave a record up and
// those behind it got through that record comes late, rather than never. With an
// answer that was lost a record may come twice, except with Config.Idempotent;
// aggregators take it once.
package kafkasink
