// Package kafkasource reads counts from a Kafka topic and finds the hot keys of
// each of its partitions. Several sources of one consumer group share the
// partitions; each publishes the hot keys of its own.
//
// The data flows one way:
//
//	brokers ─► client ─► worker of the partition ─► decoder ─► detector ─► Publisher
//	                       ▲ end offsets: the records still to come
//
// One goroutine, a worker, owns one partition: its decoder, its detector, its part of the hot
// set. Whatever was committed, it starts a window, a grace and the length of an outage before
// the present, found by time. The owner of the partition has to count the whole window. Offsets
// are committed only so that other tools see the group's progress.
//
// A partition of another source is taken over: its published keys stay hot until counts say
// otherwise, and the previous owner is fenced off. The previous owner has judged all records
// that were in the partition at the take-over. Until these are counted, no key cools and none
// becomes hot.
//
// An instance has ended only if the log continued without it. After a break in which no record
// arrived, no key cools until all instances that wrote before it have written again, or for ten
// seconds.
//
// A member that is out of the group, or cut off from all brokers, stops the time of its
// partitions. Their hot keys stay published until the group assigns partitions again. If one of
// them has a new owner, that owner has fenced the member off.
//
// Each partition has its own time (watermark.go). Records that are known to be in it and have
// not arrived stop it. A partition whose leader does not answer freezes; it is never taken for
// an empty one.
//
// The files, in the order of the data:
//
//   - config.go source.go run.go · replace.go watchdog.go a client, and another if it is stuck ·
//     client.go its options · check.go checks of the cluster
//   - assign.go resize.go the partitions that we have · poll.go batches to workers · commit.go
//     positions
//   - work.go worker.go one partition · adopt.go its take-over · record.go one record ·
//     intake.go unknown counts · gate.go the way to the publisher
//   - watermark.go ends.go its time · instances.go the live instances
//   - reload.go other rules while running · show.go stats.go
package kafkasource
