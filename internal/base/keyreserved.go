package base

import (
	"bytes"
	"strings"
)

// ReservedBytes texts stand where a key's parameters would. No request can spell them: each
// of its parameters has a "=" before the next "&".
const (
	more  = "~more"
	again = "~again&"

	unread = ":~unread" // behind the source
)

// AppendMore appends what stands for the parameters of the key that counts requests
// with more keys of a rule than a request may have: "GET /search?~more". Each of them counts
// once, for all keys that it has beyond. It becomes hot, and is limited, like any other.
func AppendMore(dst []byte) []byte { return append(dst, more...) }

// IsMore reports whether a key's text is that of [AppendMore].
func IsMore(text []byte) bool { return string(text[paramsStart(text):]) == more }

// AppendUnread appends what stands for the parameters of the key that counts requests whose
// body could not be read for a rule that names a parameter of it: "POST /login?form:~unread".
// source is "form" or "json". The key becomes hot, and is limited, like any other.
func AppendUnread(dst []byte, source string) []byte { return append(append(dst, source...), unread...) }

// IsUnread reports whether a key's text is that of [AppendUnread].
func IsUnread(text []byte) bool { return isUnread(string(text[paramsStart(text):])) }

func isUnread(params string) bool { return params == "form"+unread || params == "json"+unread }

// IsReservedParams reports whether params stand for no parameters of a request, as AppendMore,
// AppendUnread and AppendAgain write them.
func IsReservedParams(params string) bool {
	return params == more || isUnread(params) || strings.HasPrefix(params, again)
}

// A key's group is its route and the names of its parameters, "GET /search?page&q".
// The share of a key is its part of the requests of its group. A request that has
// several keys of one group is one request: what it counts beyond the first is counted
// once more under the name of [AppendAgain], and taken off the group's total. The same is
// counted for rules of which a request has overlapping keys, whose keys are added up as well.

// AppendGroup appends the group of a key with this text; paramsOnly is that of its rule.
func AppendGroup(dst, text []byte, paramsOnly bool) []byte {
	from := paramsStart(text)
	if from == 0 && !paramsOnly {
		return append(dst, text...) // a route alone
	}
	dst = append(dst, text[:from]...)
	value := false
	for _, c := range text[from:] {
		switch c {
		case '=':
			value = true
		case '&':
			value = false
		}
		if !value {
			dst = append(dst, c)
		}
	}
	return dst
}

// AppendAgain appends the name that counts what the total of a group has too much:
// "GET /search?~again&page&q".
func AppendAgain(dst, group []byte) []byte {
	from := paramsStart(group)
	return append(append(append(dst, group[:from]...), again...), group[from:]...)
}

// CutAgain appends the group of a name of [AppendAgain]; ok is false, and nothing is
// appended, for any other text.
func CutAgain(dst, text []byte) (group []byte, ok bool) {
	from := paramsStart(text)
	if !bytes.HasPrefix(text[from:], []byte(again)) {
		return dst, false
	}
	return append(append(dst, text[:from]...), text[from+len(again):]...), true
}

// IsAgain reports whether a text is a name of [AppendAgain], and no key's.
func IsAgain(text []byte) bool { return bytes.HasPrefix(text[paramsStart(text):], []byte(again)) }

// paramsStart returns where the parameters of a text begin, if it has any. The "?" of a
// parameter is escaped, that of a resource need not be.
func paramsStart(text []byte) int { return bytes.LastIndexByte(text, '?') + 1 }
