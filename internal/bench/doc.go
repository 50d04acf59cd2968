// Package bench measures hotparam on the machine that it runs on, for the
// command `hotparam bench`: what a request pays ([Request]), how many lines the
// aggregator takes in ([Ingest]), how good detection is beside an exact count
// ([Detect]), how long it takes from a burst to the limit in force on the last of many
// instances ([Enforce]), and what the whole chain takes over UDP and over Kafka
// ([Pipeline]).
//
// Alternatives are measured in the same run, in turns, and reported as medians:
// then a machine that is busy changes all figures alike. What has to be a process
// of its own, such as a sender or an instance, is the program itself, started anew
// as a part ([RunPart]): a part ends when its standard input does, so none outlives
// the process that started it, however that ends.
package bench
