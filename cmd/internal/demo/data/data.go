// Package data holds the real access log that the demo replays. Its origin and
// terms are in README.md.
package data

import _ "embed"

// EDGAR is the access log of the SEC's EDGAR web server for the first 28
// seconds of 2017-06-30 (UTC): combined format, whole seconds, in the order of
// time, compressed with zstd. It has 9,925 requests, all of the form
// "GET /Archives/edgar/data?cik=<company>&accession=<filing>&doc=<file>".
//
//go:embed edgar-2017-06-30.access.log.zst
var EDGAR []byte
