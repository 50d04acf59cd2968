package rules

import (
	"strings"

	"github.com/hotparam/hotparam/internal/base"
)

// Source is the place where a parameter was found. It is part of the parameter's identity: in a
// key's text every source but the query is written before the name, as in "path:id=7".
type Source uint8

// The sources of a parameter. Guards read all of them.
const (
	Query Source = iota
	Path
	Header // named in lower case
	Cookie
	Addr // the client's address, on a level: "ip", "v4/24", "v6/48"
	Form // the query, and the body if that is a form
	JSON // the body, by its path: "user.id", "items.*.id"
	RPC  // a message's field, with a dot before each field of a message within
	Ctx  // values that the application supplies for the request
	sources
)

// sourceRow describes one source.
type sourceRow struct {
	word string // the prefix before the colon
	// check returns an error message and a hint for a name that is not empty. The message is
	// empty if the name is valid.
	check func(name string) (message, hint string)
}

var sourceRows = [sources]sourceRow{
	Query:  {"", anyName},
	Path:   {"path", anyName},
	Header: {"header", checkHeader},
	Cookie: {"cookie", checkCookie},
	Addr:   {"addr", checkLevel},
	Form:   {"form", anyName},
	JSON:   {"json", checkPath},
	RPC:    {"rpc", checkField},
	Ctx:    {"ctx", anyName},
}

// String returns the source as the grammar writes it; the query is empty.
func (s Source) String() string {
	if s < sources {
		return sourceRows[s].word
	}
	return "invalid"
}

// ParseSource reads the text that [Source.String] writes, and "query".
func ParseSource(name string) (Source, bool) {
	if name == "query" {
		return Query, true
	}
	for s := range sourceRows {
		if sourceRows[s].word == name {
			return Source(s), true
		}
	}
	return 0, false
}

// Param is one parameter of a request, its name and value decoded.
type Param struct {
	Source Source
	Name   string
	Value  string
}

// allSources are the sources that rules can name.
const allSources = "query, path, header, cookie, addr, form, json, rpc, ctx"

// ParseName reads a parameter's name as rules write it: "q", "path:id" or "header:x-plan". It
// returns an error message and a hint for a name that is not valid, and otherwise two empty
// texts.
func ParseName(s string) (p Param, message, hint string) {
	word, name, found := strings.Cut(s, ":")
	if !found {
		word, name = "query", s
	}
	source, known := ParseSource(word)
	if !known || word == "" {
		hint := "sources are " + allSources
		if near := base.NearestWord(word, strings.Split(allSources, ", ")); near != "" {
			hint = "did you mean " + quoted(near+":"+name)
		}
		return Param{}, "unknown source " + quoted(word), hint + "; for a query parameter of that name write " + quoted("query:"+s)
	}
	if source == Header {
		name = strings.ToLower(name) // however it is written
	}
	p = Param{Source: source, Name: name}
	if message, hint = p.CheckName(); message != "" {
		return Param{}, message, hint
	}
	return p, "", ""
}

// FormatName returns the parameter's name in the form that [ParseName] reads: "q", "query:a:b" or
// "path:id".
func (p Param) FormatName() string {
	switch {
	case p.Source != Query:
		return p.Source.String() + ":" + p.Name
	case strings.Contains(p.Name, ":"):
		return "query:" + p.Name
	}
	return p.Name
}

// CheckName returns an error message and a hint for the parameter's name as a rule has it. The
// message is empty if the name is valid.
func (p Param) CheckName() (message, hint string) {
	switch {
	case p.Source >= sources:
		return "there is no such source", "for example q, path:id or header:x-plan"
	case p.Name == "":
		return "the name is empty", "for example q, query:q or path:id"
	}
	return sourceRows[p.Source].check(p.Name)
}

func anyName(string) (message, hint string) { return "", "" }

func checkHeader(name string) (message, hint string) {
	switch {
	case !isToken(name):
		return "no header can have this name", "for example header:x-plan"
	case name != strings.ToLower(name):
		return "headers are named in lower case", "write header:" + strings.ToLower(name)
	case name == "cookie":
		return "the header holds all cookies, and secrets among them", "name the cookie, for example cookie:cart"
	}
	return "", ""
}

func checkCookie(name string) (message, hint string) {
	if !isToken(name) {
		return "no cookie can have this name", "for example cookie:cart"
	}
	return "", ""
}

func checkField(name string) (message, hint string) {
	for part := range strings.SplitSeq(name, ".") {
		if !isIdentifier(part) {
			return "no field of a message can have this name", "as in the .proto file, for example rpc:user.id"
		}
	}
	return "", ""
}

func checkLevel(name string) (message, hint string) {
	if _, ok := base.ParseAddrLevel(name); !ok {
		return "an address has no such level", base.AddrLevelHint
	}
	return "", ""
}

func checkPath(name string) (message, hint string) {
	if _, message := base.ParseJSONPath(name); message != "" {
		return message, base.JSONPathHint
	}
	return "", ""
}

// isToken reports whether s is a token of RFC 9110, 5.6.2.
func isToken(s string) bool {
	return consistsOf(s, func(c byte) bool {
		return c < 0x80 && kinds[c] >= digit || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
	})
}
