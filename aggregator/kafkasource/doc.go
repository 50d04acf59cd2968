// Package kafkasource reads counts from a Kafka topic and finds the hot keys of
// each of its partitions. Several sources of one consumer group share the
// partitions; each publishes what it finds in those that it has.
//
// The data flows one way:
//
//	brokers ─► client ─► worker of the partition ─► decoder ─► detector ─► Publisher
//	                       ▲ end offsets: what is still to come
//
// One goroutine, a worker, owns one partition: its decoder, its detector, its
// part of the hot set. It starts a window, a grace and the length of an outage
// before the present, found by time, whatever was committed: what a window holds
// has to be counted by who has the partition now. Offsets are committed all the
// same, so that other tools see how far the group is; nothing reads them here.
//
// A partition that comes from another source is taken over: the keys that are
// published for it stay hot until counts say otherwise, and who had it before is
// fenced off. Until all that was in the partition at the take-over is counted,
// low counts hold and high ones are unknown, so nothing cools.
//
// A member that is out of the group, or cut off from all brokers, lets its
// partitions stand still, and what is hot in them published, until it is told what
// is its own. Whoever has got one of them meanwhile has fenced it off there.
//
// Time is of the partition, too (watermark.go): what is known to be in it and has
// not come stops it. A partition whose leader does not answer freezes; it never
// is taken for one in which nobody counts.
//
// The files: source.go Config, Run · client.go the connection · assign.go who has
// which partition · poll.go batches to workers · worker.go one partition ·
// adopt.go its take-over · watchdog.go replace.go a client that is stuck · record.go one record · intake.go what is unknown ·
// gate.go the way to the publisher · watermark.go ends.go its time · resize.go
// more partitions · instances.go commit.go dial.go check.go stats.go
package kafkasource
