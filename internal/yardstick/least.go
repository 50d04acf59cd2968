package yardstick

import (
	"bytes"
	"strconv"
)

// SortTwo appends a query of two parameters to dst, with the parameters sorted and without
// decoding. It is the least work that makes a key.
func SortTwo(dst []byte, query string) []byte {
	amp := 0
	for query[amp] != '&' {
		amp++
	}
	first, second := query[:amp], query[amp+1:]
	if second < first {
		first, second = second, first
	}
	dst = append(dst, first...)
	dst = append(dst, '&')
	return append(dst, second...)
}

// CutLine parses the first line of a packet, "PREFIXKEY:N|c" with a prefix of that length, and
// returns its key, its count and the rest of the packet. It does only the work that any reader
// must do, and shares no code with package decode, which is compared with it. ok is false if the
// line has another form.
func CutLine(packet []byte, prefix int) (key []byte, n int64, tail []byte, ok bool) {
	line := packet
	if end := bytes.IndexByte(packet, '\n'); end >= 0 {
		line, tail = packet[:end], packet[end+1:]
	}
	colon := bytes.IndexByte(line, ':')
	if colon < prefix || !bytes.HasSuffix(line, []byte("|c")) {
		return nil, 0, tail, false
	}
	n, err := strconv.ParseInt(string(line[colon+1:len(line)-len("|c")]), 10, 64)
	return line[prefix:colon], n, tail, err == nil
}
