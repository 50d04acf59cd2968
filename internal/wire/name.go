package wire

import (
	"bytes"
	"encoding/binary"
)

// cutName cuts the name off a line, without the tags in it. If tags were cut out of its middle,
// the name is assembled after the content of buf.
//
//	name,tag=v:   Telegraf          name#tag=v:  Librato
//	name;tag=v:   Graphite          na[tag=v]me: SignalFx
func cutName(buf, line []byte) (name, samples, room []byte, ok bool) {
	colon := bytes.IndexByte(line, ':')
	if colon < 0 {
		return nil, nil, buf, false
	}
	if plainName(line[:colon]) {
		return line[:colon], line[colon+1:], buf, true
	}
	start, from := len(buf), 0 // from is the start of the part that is not in buf yet
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '[':
			n := bytes.IndexAny(line[i+1:], "[]|")
			if n < 0 || line[i+1+n] != ']' {
				return nil, nil, buf, false
			}
			buf = append(buf, line[from:i]...)
			i += 1 + n
			from = i + 1
		case ']':
			return nil, nil, buf, false
		case ',', ';', '#', ':':
			colon = bytes.IndexByte(line[i:], ':')
			if colon < 0 {
				return nil, nil, buf, false
			}
			if from == 0 { // nothing was cut out
				return line[:i], line[i+colon+1:], buf, true
			}
			buf = append(buf, line[from:i]...)
			return buf[start:], line[i+colon+1:], buf, true
		}
	}
	return nil, nil, buf, false
}

// separates holds the bytes that cannot be in a name: its end, and the separators of tags.
var separates = func() (t [256]bool) {
	for _, c := range ":,;#[]" {
		t[c] = true
	}
	return t
}()

// plainName reports whether a name certainly has no separator. It may return false for a name
// with a \ or bytes beyond ASCII. Every line has to pass it, so it reads eight bytes at a time,
// some of them twice, and branches little: names differ in length, and mispredicted branches
// cost more.
func plainName(s []byte) bool {
	if len(s) < 8 {
		for _, c := range s {
			if separates[c] {
				return false
			}
		}
		return true
	}
	found := uint64(0)
	for ; len(s) > 32; s = s[24:] {
		found |= separators(s) | separators(s[8:]) | separators(s[16:])
	}
	found |= separators(s) | separators(s[len(s)-8:])
	if len(s) > 16 {
		found |= separators(s[8:]) | separators(s[len(s)-16:])
	}
	return found&highs == 0
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// separators returns a word with a high bit set if one of the first eight bytes separates or is
// beyond ASCII. In each ASCII byte, x^c is 0 where x is c, and only 0 minus one has the high bit
// set; x + (0x80-c) has it set from c on. : and ; differ only in the lowest bit, and between [
// and ] there is only \, which is as rare. A byte beyond ASCII sets the bit for comma or hash.
func separators(s []byte) uint64 {
	x := binary.LittleEndian.Uint64(s)
	comma, hash := x^ones*','-ones, x^ones*'#'-ones
	colons := (x | ones) ^ ones*';' - ones
	brackets := (x + ones*(0x80-'[')) ^ (x + ones*(0x80-']'-1))
	return comma | hash | colons | brackets
}
