// Package accesslog reads the access logs of real servers, so that their requests can be
// replayed.
//
// It reads combined (Apache, nginx; common is its beginning), JSON lines as Caddy, Traefik,
// Envoy and nginx write them, and any other JSON or delimited lines whose fields are named by
// [Fields]. A file, or standard input, may be plain, gzip or zstd, which its first bytes show.
// Data flows one way:
//
//	source (bytes, plain) ─► lines ─► decoder (format, fields) ─► sorted (files) ──────────► Entry
//	                                                          └─► reorder (standard input) ─► Entry
//
// Files are read whole, then sorted by time together. For that the entries are kept compact (32
// bytes and their text). A single file is not streamed, even if it is in order. To know that, it
// would have to be read twice, which is impossible for a named pipe. So every file is known to
// be readable before its first request is replayed. Logs too large for memory go through
// standard input, which is streamed. Servers write a line when a request is done, and many stamp
// it with the time of its beginning, so a few seconds of it are held back and sorted.
//
//	accesslog.go    Log, one or more files that are read together
//	options.go      its settings
//	source.go       bytes, plain, of files and standard input
//	lines.go        lines
//	linedecoder.go  one line, also of a log that grows
//	formats.go      all formats, with the places of their fields
//	fields.go       formats that users describe
//	spell.go        spellings of the names of fields
//	decoder.go      a line to a request, by its format
//	combined.go     the combined format
//	delimited.go    lines of columns
//	shape.go        JSON lines
//	roles.go        the meaning of fields
//	clock.go        their times, and clockformat.go the formats of times
//	request.go      checks of the parts of a request
//	sorted.go       sorted files
//	kept.go         logs that are read more than once
//	reorder.go      sorted standard input
//	stats.go        counters, and bad lines to show
//
// Libraries were considered. github.com/satyrius/gonx makes a regular expression of nginx's
// log_format, which the owner of the log would have to know, and a map of each line. It takes 8
// times as long per line as combined takes here, reads no JSON, does not sort, and has not
// changed since 2018. To decode a line with encoding/json takes twice as long as to check it with
// encoding/json and walk through it. formats.go declares all formats.
package accesslog
