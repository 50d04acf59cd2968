// Package bench measures hotparam on the machine that it runs on, for the command `hotparam
// bench`. [Request] measures the cost of a request, and [Ingest] the lines per second that the
// aggregator processes. [Detect] compares detection with an exact count. [Enforce] measures the
// time from a burst to its limit in force on the last of many instances. [Fleet] measures how
// instances hold one limit together, and [Pipeline] the cost of the whole chain over UDP and over
// Kafka.
//
// Alternatives are measured in the same run, in turns, and reported as medians, so that load on
// the machine changes all figures alike. Parts that need their own process, such as a sender or
// an instance, run this program again as a part ([RunPart]). A part ends when its standard input
// does, so none outlives the process that started it, however that process ends.
package bench
