// Package kafkasink implements a collector sink that writes to Kafka. For each flush and
// partition it writes one record of StatsD lines, whose headers state the sender and the time of
// the counts ([wire.RecordHead]).
//
//	sink, err := kafkasink.New(kafkasink.Config{
//		Rules:      rules,
//		Connection: kafka.Connection{Brokers: []string{"kafka-1:9092", "kafka-2:9092"}},
//	})
//	…
//	counts, err := collector.New(collector.Config{Sink: sink})
//
// # The path of a record
//
//	collector ─► Sink.Send ─► packer ─► queue ─► session ══► brokers
//	                                      ▲         │
//	                                      └─ retry ─┘
//
// [Sink.Send] (sink.go, with the settings of config.go) builds records
// (pack.go, record.go) and adds them to a queue (queue.go). It does not block. One goroutine,
// which the first Send starts and [Sink.Close] stops, connects to the cluster (session.go,
// cluster.go). It passes records to the producer of franz-go, which does not block either, and
// receives the results (run.go). A record counts towards Config.Buffer until it is delivered or
// given up, so that Buffer bounds both waiting records and records in flight. If the buffer is
// full, the newest record is dropped.
//
// errors.go and reach.go judge and log errors; stats.go counts.
//
// # Losses
//
// A record gets the next number of its partition when it is built, so that a record which is
// dropped later leaves a gap that the aggregator sees. Counts from before the partitions were
// known have no number; the next records state their sum as unsent. All losses are counted by
// reason in [Stats].
//
// A record that the producer returns is retried until it is 10 s old. By then a partition has
// found a new leader, and older counts are of little use for windows of seconds.
//
// # Damaged answers and a stuck client
//
// A session is replaced if a broker asks for a pause of more than a second, as a damaged answer
// does. It is also replaced if it reports nothing about a partition's records for the time that a
// record is retried plus a timeout. The new session gets the records. The number of sessions that
// have not ended is bounded, and nothing waits for them.
//
// # Order
//
// The records of a partition arrive in the order of their numbers, retries included: one
// request at a time is sent to a broker, unless Config.Idempotent makes the broker keep the
// order of several. The exception is a record that the producer returned while later ones were
// delivered; it arrives late. If an answer is lost, the records of a request can arrive twice
// unless Config.Idempotent is set; aggregators count them once.
package kafkasink
