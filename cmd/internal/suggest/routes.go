package suggest

import (
	"slices"
	"strings"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/rules"
)

const (
	// maxNodes bounds the memory for paths. Further paths are left out.
	maxNodes = 200_000
	// manyChildren is the number of different segments in one place that are taken for values.
	manyChildren = 100
)

// routes derives patterns from paths. A segment that is a number, a UUID or a long code is a
// value. So are segments without children, if one place has very many of them. Uncertain segments
// stay literal: a rule for one path is only narrow, but a wrong pattern counts unrelated requests
// together.
type routes struct {
	methods map[string]*pathNode
	nodes   int
	leftOut int64
}

// pathNode is a segment of a path.
type pathNode struct {
	literal  map[string]*pathNode
	value    *pathNode // the child for all segments that are values
	only     string    // the only value segment so far, or ""
	requests int64     // requests whose path ends here
	route    *routePattern
}

// routePattern is a pattern with its parameters.
type routePattern struct {
	pattern string   // "GET /orders/{order}"
	names   []string // names of the wildcards
	params  map[string]*routeParam
	served  served
}

// add adds the path of a request.
func (r *routes) add(method, path string) {
	if r.methods == nil {
		r.methods = make(map[string]*pathNode)
	}
	if method == "HEAD" {
		method = "GET" // routes for GET match HEAD too
	}
	n := r.methods[method]
	if n == nil {
		n = &pathNode{}
		r.methods[method] = n
	}
	for segment := range segments(path) {
		next := n.child(segment)
		if next == nil {
			if r.nodes >= maxNodes || strings.ContainsAny(segment, "{}") {
				r.leftOut++
				return
			}
			r.nodes++
			next = n.makeChild(segment)
		}
		n = next
	}
	n.requests++
}

// segments yields the segments of a path in the form in which rules compare them.
func segments(path string) func(yield func(string) bool) {
	path = string(base.AppendPath(nil, path))
	return strings.SplitSeq(strings.TrimPrefix(path, "/"), "/")
}

func (n *pathNode) child(segment string) *pathNode {
	if child := n.literal[segment]; child != nil {
		return child
	}
	if !isValue(segment) {
		return nil
	}
	if n.value != nil && segment != n.only {
		n.only = ""
	}
	return n.value
}

func (n *pathNode) makeChild(segment string) *pathNode {
	child := &pathNode{}
	if isValue(segment) {
		n.value, n.only = child, segment
		return child
	}
	n.setLiteral(segment, child)
	return child
}

func (n *pathNode) setLiteral(segment string, child *pathNode) {
	if n.literal == nil {
		n.literal = make(map[string]*pathNode)
	}
	n.literal[segment] = child
}

// isValue reports whether a segment is certainly a value: a number, a UUID, or a code of letters
// and digits that does not look like a name.
func isValue(s string) bool {
	digits, letters, hex, dashes := 0, 0, true, 0
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			letters++
			hex = hex && c|0x20 <= 'f'
		case c == '-' && i > 0 && i < len(s)-1:
			dashes++
		default:
			return false
		}
	}
	switch {
	case digits == 0:
		return false
	case letters == 0:
		return dashes == 0
	case len(s) == 36 && dashes == 4 && hex: // UUID
		return true
	case dashes > 0:
		return false
	}
	return hex && len(s) >= 12 && digits >= 3 || len(s) >= 20 && digits >= 4 // a hash; a ULID and the like
}

// settle returns the routes, once all paths have been added.
func (r *routes) settle() []*routePattern {
	var all []*routePattern
	for method, n := range r.methods {
		n.settle(method+" ", nil, 0, &all)
	}
	slices.SortFunc(all, func(a, b *routePattern) int { return strings.Compare(a.pattern, b.pattern) })
	return all
}

func (n *pathNode) settle(prefix string, names []string, depth int, all *[]*routePattern) {
	if n.value != nil && n.only != "" { // a single value, as in /api/2: a constant
		n.setLiteral(n.only, n.value)
		n.value = nil
	}
	if depth > 0 {
		n.gather()
	}
	if n.requests > 0 && depth > 0 {
		pattern := prefix
		if strings.HasSuffix(pattern, "/") {
			pattern += "{$}"
		}
		n.route = &routePattern{pattern: pattern, names: names, params: make(map[string]*routeParam)}
		if _, err := rules.ParseRoute(pattern); err == nil {
			*all = append(*all, n.route)
		}
	}
	for segment, child := range n.literal {
		child.settle(prefix+"/"+segment, names, depth+1, all)
	}
	if n.value != nil {
		name := wildcard(prefix, names)
		n.value.settle(prefix+"/{"+name+"}", append(slices.Clone(names), name), depth+1, all)
	}
}

// gather replaces very many segments without children by one wildcard.
func (n *pathNode) gather() {
	leaves := 0
	for segment, child := range n.literal {
		if segment != "" && len(child.literal) == 0 && child.value == nil {
			leaves++
		}
	}
	if leaves < manyChildren || leaves < len(n.literal)*9/10 {
		return
	}
	if n.value == nil {
		n.value = &pathNode{}
	}
	for segment, child := range n.literal {
		if segment != "" && len(child.literal) == 0 && child.value == nil {
			n.value.requests += child.requests
			delete(n.literal, segment)
		}
	}
}

// wildcard names a value after the preceding segment: {order} below /orders.
func wildcard(prefix string, names []string) string {
	last := strings.ToLower(prefix[strings.LastIndexByte(prefix, '/')+1:])
	name := strings.Map(func(r rune) rune {
		if r == '-' || r == '.' {
			return '_'
		}
		return r
	}, last)
	name = strings.TrimSuffix(name, "s")
	for i := range len(name) {
		if c := name[i] | 0x20; (c < 'a' || c > 'z') && name[i] != '_' {
			name = ""
			break
		}
	}
	if len(name) < 2 || (&rules.Secrets{}).Hides(name) {
		name = "id"
	}
	unique := name
	for n := 2; slices.Contains(names, unique); n++ {
		unique = name + string(rune('0'+n%10))
	}
	return unique
}

// findRoute returns the route of a request and the values of its wildcards. The route is nil if the
// path was left out.
func (r *routes) findRoute(method, path string, values []string) (*routePattern, []string) {
	if method == "HEAD" {
		method = "GET"
	}
	n := r.methods[method]
	if n == nil {
		return nil, nil
	}
	for segment := range segments(path) {
		next := n.literal[segment]
		if next == nil && segment != "" {
			if next = n.value; next != nil {
				values = append(values, segment)
			}
		}
		if next == nil {
			return nil, nil
		}
		n = next
	}
	return n.route, values
}
