// Package accesslog reads the access logs of real servers, so that their
// requests can be replayed.
//
// It reads combined (Apache, nginx; common is its beginning), JSON lines as Caddy, Traefik,
// Envoy and nginx write them, and any other JSON or delimited lines whose fields are named by
// [Fields]. A file, or standard input, may be plain, gzip or zstd: its first bytes tell. Data
// flows one way:
//
//	source (bytes, plain) ─► lines ─► decoder (format, fields) ─► sorted (files) ──────────► Entry
//	                                                          └─► reorder (standard input) ─► Entry
//
// Files are read whole, then sorted by time all together; the entries are kept
// compact for that (32 bytes and their text). A single file is not streamed,
// even when it is in order: to know that it is, it would have to be read twice,
// and a named pipe cannot be. So every file is known to be readable before its
// first request is replayed. What is too large for memory goes through standard
// input, which is streamed: servers write a line when a request is done, and many
// stamp it with when it began, so a few seconds of it are held back and sorted.
//
//	accesslog.go  Log, one or more files that are read together
//	options.go    its settings
//	source.go     bytes, plain, of files and standard input
//	lines.go      lines, and linedecoder.go those of a log that grows
//	formats.go    all formats: where their lines have what
//	fields.go     formats that users describe
//	spell.go      how names of fields are written
//	decoder.go    a line to a request, by its format
//	combined.go   the combined format
//	delimited.go  lines of columns
//	shape.go      JSON lines; jsonscan.go reads one
//	roles.go      what fields say of a request; clock.go and clockformat.go their times
//	request.go    what the parts of a request may be
//	sorted.go     files sorted, and kept.go read more than once
//	reorder.go    standard input sorted
//	stats.go      counters, and bad lines to show
//
// Libraries were weighed. github.com/satyrius/gonx makes a regular expression of nginx's log_format,
// which whoever has the log would have to know, and a map of each line. A line takes it 8 times as
// long as combined takes here, it reads no JSON and sorts nothing, and it has not changed since 2018.
// For JSON see jsonscan.go, for times clock.go. formats.go declares all formats.
package accesslog
