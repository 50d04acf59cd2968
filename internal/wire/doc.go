// Package wire encodes and decodes every byte that leaves a process: the StatsD line that carries
// a count, the meta line before it, and the headers of a Kafka record. Encoders append to a
// buffer of the caller; decoders return views into the packet, guess nothing, and never panic.
//
// A count travels as
//
//	{prefix}.hot_param.{key}:{n}|c
//
// with the prefix "{namespace}.{rule id}" unless the rule has its own, and the
// key's canonical text in one of two encodings. Lines are joined by newlines to
// packets of at most [MaxPacket] bytes. A packet to hotparam's own listener
// begins with a meta line, which states the sender and the time of the counts.
//
// The files: line.go a count, in the name.go and encoding.go of its key, with cut.go for the
// plainest lines · number.go sample.go its fields · account.go its sender's sum · meta.go the
// line before, signature.go its signature · heldback.go rulesums.go bucketsums.go origin.go
// usage.go other lines · record.go partition.go Kafka · address.go where packets go.
package wire
