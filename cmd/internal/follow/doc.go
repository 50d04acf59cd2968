// Package follow counts the requests of access logs as they are written, and sends the counts
// like an instance, so that hot parameters are found live without a change to the application.
//
//	tail.go      the files of one log, through rotation and truncation
//	file.go      one open file, split into lines
//	stream.go    standard input
//	requests.go  a line as a request to the guard, which makes its keys
//	slots.go     requests sorted and sent by their own times
//	follow.go    the follower
//	stats.go     counters · metrics.go their metrics · service.go the process
//
// A line may be written late: when its request is done, or when a buffer of the server is full.
// So a request is counted at the time in its line, not at the time when the line arrives.
// Requests older than any window are dropped and counted.
//
// github.com/nxadm/tail, the maintained fork of hpcloud/tail, was considered. At a rotation it
// leaves the old file, to which a server writes until it reopens its log, and it passes each
// line through a channel. It would replace tail.go and most of file.go.
package follow
