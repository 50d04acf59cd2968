package hotparam

// Source is where a parameter was found. It is part of the parameter's
// identity: in a key's text every source but the query is written before the
// name, as in "path:id=7".
type Source uint8

// The sources of a parameter. What the middleware reads today is the query and
// the path; the others are reserved by the grammar.
const (
	Query Source = iota
	Path
	Header
	Cookie
	Addr
	Form
	JSON
	RPC
	sources
)

var sourceNames = [sources]string{"", "path", "header", "cookie", "addr", "form", "json", "rpc"}

// String returns the source as the grammar writes it; the query is empty.
func (s Source) String() string {
	if s < sources {
		return sourceNames[s]
	}
	return "invalid"
}

// ParseSource reads what [Source.String] writes, and "query".
func ParseSource(name string) (Source, bool) {
	if name == "query" {
		return Query, true
	}
	for s, n := range sourceNames {
		if n == name {
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
