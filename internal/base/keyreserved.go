package base

import (
	"bytes"
	"strings"
)

// Reserved texts replace a key's parameters. No request can spell them: each of a request's
// parameters has a "=" before the next "&".
const (
	more  = "~more"
	again = "~again&"

	unread = ":~unread" // after the source
)

// AppendMore appends the reserved parameters of the key that counts requests with more keys of a
// rule than a request may have: "GET /search?~more". Each of these requests counts once, for all
// its keys beyond the maximum. The key becomes hot, and is limited, like any other.
func AppendMore(dst []byte) []byte { return append(dst, more...) }

// IsMore reports whether a key's text has the parameters of [AppendMore].
func IsMore(text []byte) bool { return string(text[paramsStart(text):]) == more }

// AppendUnread appends the reserved parameters of the key that counts requests whose body could
// not be read, for a rule that names a parameter of it: "POST /login?form:~unread". source is
// "form" or "json". The key becomes hot, and is limited, like any other.
func AppendUnread(dst []byte, source string) []byte { return append(append(dst, source...), unread...) }

// IsUnread reports whether a key's text has the parameters of [AppendUnread].
func IsUnread(text []byte) bool { return isUnread(string(text[paramsStart(text):])) }

func isUnread(params string) bool { return params == "form"+unread || params == "json"+unread }

// IsReservedParams reports whether params are a reserved text, as AppendMore, AppendUnread and
// AppendAgain write it, and not the parameters of a request.
func IsReservedParams(params string) bool {
	return params == more || isUnread(params) || strings.HasPrefix(params, again)
}

// A key's group is its route and the names of its parameters, "GET /search?page&q". The share of
// a key is its part of the requests of its group. A request with several keys of one group is
// one request: its counts beyond the first are counted again under the name of [AppendAgain],
// and subtracted from the group's total. Rules whose keys overlap within a request are counted
// in the same way, since their keys are added up too.

// AppendGroup appends the group of a key with this text. paramsOnly is the rule's ParamsOnly.
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

// AppendAgain appends the name that counts the excess of a group's total:
// "GET /search?~again&page&q".
func AppendAgain(dst, group []byte) []byte {
	from := paramsStart(group)
	return append(append(append(dst, group[:from]...), again...), group[from:]...)
}

// CutAgain appends the group of a name of [AppendAgain]. For any other text, ok is false and
// nothing is appended.
func CutAgain(dst, text []byte) (group []byte, ok bool) {
	from := paramsStart(text)
	if !bytes.HasPrefix(text[from:], []byte(again)) {
		return dst, false
	}
	return append(append(dst, text[:from]...), text[from+len(again):]...), true
}

// IsAgain reports whether a text is a name of [AppendAgain], and not a key's text.
func IsAgain(text []byte) bool { return bytes.HasPrefix(text[paramsStart(text):], []byte(again)) }

// paramsStart returns the index of a text's parameters, or 0 if it has none. The "?" of a
// parameter is escaped; that of a resource need not be.
func paramsStart(text []byte) int { return bytes.LastIndexByte(text, '?') + 1 }
