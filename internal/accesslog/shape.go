package accesslog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// shape is the places of the fields in the lines of one kind of log. It is immutable.
type shape struct {
	root      *memberNode    // root of the JSON object
	columns   []wantedColumn // columns of delimited lines
	clock     clockFormat    // format of the time; nil means any known format
	unit      time.Duration  // unit of a duration that has none
	forwarded bool           // a caller may have a port, or be preceded by other callers
	values    int            // number of wanted headers and cookies
}

// memberNode describes a member of an object that is read.
type memberNode struct {
	members map[string]*memberNode
	role    role // noRole if it has no meaning for the request
	rank    uint8
	value   int      // number of a wanted header or cookie, or -1
	cookies []cookie // wanted cookies of a Cookie header
	sign    bool     // only logs of this shape have it
}

// cookie is a wanted cookie and its number.
type cookie struct {
	name  string
	value int
}

func newNode() *memberNode { return &memberNode{role: noRole, value: -1} }

// child returns the node at a path, creating it if there is none.
func (n *memberNode) child(path ...string) *memberNode {
	for _, name := range path {
		if n.members == nil {
			n.members = make(map[string]*memberNode)
		}
		next := n.members[name]
		if next == nil {
			next = newNode()
			n.members[name] = next
		}
		n = next
	}
	return n
}

var (
	errJSON   = errors.New("it is not a JSON object")
	errEscape = fmt.Errorf(`%w: it has \x escapes, which nginx does not write with escape=json`, errJSON)
	errFields = errors.New("time, method or uri is missing")
	errString = errors.New("method, uri or the caller's address is not a string")
)

// decodeJSON decodes an object. signed reports whether it has a member that is peculiar to this
// shape.
func (s *shape) decodeJSON(line []byte, t *texts, r *parsedLine) (signed bool, err error) {
	t.reset(s.values)
	if line[0] != '{' || !json.Valid(line) {
		if bytes.Contains(line, []byte(`\x`)) {
			return false, errEscape
		}
		return false, errJSON
	}
	_, signed = s.object(line, 0, s.root, t, r)
	for role, value := range t.byRole {
		switch {
		case value == nil:
		case string(value) == "null":
			t.byRole[role] = nil
		case value[0] != '"' && isText[role]:
			err = errString
		default:
			t.byRole[role] = r.unquote(value)
		}
	}
	switch {
	case !t.complete():
		return signed, errFields
	case err != nil:
		return signed, err
	}
	return signed, t.request(s, r)
}

// isText are the roles whose values must be strings.
var isText = [roles]bool{roleMethod: true, roleURI: true, rolePath: true, roleQuery: true, roleRequest: true, roleCaller: true}

// object reads the wanted members of the object that begins at i, and returns the position behind
// it. The text is valid JSON.
func (s *shape) object(text []byte, i int, n *memberNode, t *texts, r *parsedLine) (end int, signed bool) {
	i = base.SkipJSONSpace(text, i+1)
	for text[i] != '}' {
		end := base.SkipJSONString(text, i)
		member := n.members[string(r.unquote(text[i:end]))]
		i = base.SkipJSONSpace(text, base.SkipJSONSpace(text, end)+1) // skips the colon
		switch {
		case member != nil && member.members != nil && text[i] == '{':
			var inner bool
			i, inner = s.object(text, i, member, t, r)
			signed = signed || inner
		case member != nil:
			end = base.SkipJSON(text, i)
			signed = member.setValue(text[i:end], t, r) || signed
			i = end
		default:
			i = base.SkipJSON(text, i)
		}
		if i = base.SkipJSONSpace(text, i); text[i] == ',' {
			i = base.SkipJSONSpace(text, i+1)
		}
	}
	return i + 1, signed
}

// setValue sets the fields that the member is, and reports whether only logs of this shape have it.
func (n *memberNode) setValue(value []byte, t *texts, r *parsedLine) (signed bool) {
	if value[0] == '[' && n.role == noRole { // some servers log headers as arrays
		first := base.SkipJSONSpace(value, 1)
		if value[first] == ']' {
			return false
		}
		value = value[first:base.SkipJSON(value, first)]
	}
	if n.role != noRole {
		t.set(n.role, n.rank, value)
	}
	if value[0] == '"' && n.value >= 0 {
		t.setExtra(n.value, r.unquote(value))
	}
	if value[0] == '"' && len(n.cookies) > 0 {
		t.setCookies(n.cookies, r.unquote(value))
	}
	return n.sign
}

// setExtra sets a header or a cookie. Servers write "-" or nothing for a missing one.
func (t *texts) setExtra(number int, text []byte) {
	if len(text) > 0 && string(text) != "-" {
		t.extra[number] = text
	}
}

// setCookies sets the wanted cookies of a Cookie header.
func (t *texts) setCookies(wanted []cookie, header []byte) {
	for len(header) > 0 {
		var pair []byte
		pair, header, _ = bytes.Cut(header, []byte{';'})
		name, value, _ := bytes.Cut(bytes.TrimSpace(pair), []byte{'='})
		for _, c := range wanted {
			if string(name) == c.name {
				t.setExtra(c.value, value)
			}
		}
	}
}

// unquote returns the text of a JSON string. Other values are returned unchanged.
func (r *parsedLine) unquote(value []byte) []byte {
	if value[0] != '"' {
		return value
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1 : len(value)-1]
	}
	var text string
	_ = json.Unmarshal(value, &text) // it is valid
	return []byte(text)
}
