// Package follow counts the requests of access logs as they are written, and sends the counts as
// instances do, so that hot parameters are known live without a change to the application.
//
//	tail.go      the files of one log, through rotation and truncation
//	file.go      one open file, cut into lines
//	stream.go    standard input
//	requests.go  a line as a request to the guard that makes keys of it
//	slots.go     requests sorted by their own times, and sent by these
//	follow.go    the follower
//	reload.go    rules that change
//	stats.go     counters · metrics.go the metrics of them · service.go the process
//
// A line may be written late: when its request is done, or when a buffer of the server is
// full. So a request is counted when it happened by its own line, not when its line came; what
// is older than any window is dropped and counted.
//
// github.com/nxadm/tail, the maintained fork of hpcloud/tail, was weighed: at a rotation it leaves the
// old file, to which a server writes until it is told of the new one, and it passes each line through
// a channel. What it would replace is tail.go and most of file.go.
package follow
