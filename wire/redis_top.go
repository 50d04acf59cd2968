package wire

import (
	"errors"
	"strconv"
	"strings"

	"github.com/hotparam/hotparam/rules"
)

// maxOrigin is how many bytes the name of an origin has at most.
const maxOrigin = 512

// appendTop appends where a hot key's requests come from and go to:
//
//	{"routes":[{"name":"GET /search","count":120,"over":3}],"instances":[…],"callers":[…],"explains":4}
//
// What is empty or zero is left out. What a reader would refuse is made to fit:
// of an entry that limits, this is the part that is only looked at.
func appendTop(dst []byte, top *rules.Attribution) []byte {
	dst = append(dst, '{')
	start := len(dst)
	for _, list := range []struct {
		name    string
		origins []rules.Origin
	}{{"routes", top.Routes}, {"instances", top.Instances}, {"callers", top.Callers}} {
		if len(list.origins) == 0 {
			continue
		}
		dst = appendField(dst, start, list.name)
		dst = append(dst, '[')
		for i, o := range list.origins[:min(len(list.origins), rules.MaxOrigins)] {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendOrigin(dst, o)
		}
		dst = append(dst, ']')
	}
	if top.Explains > 0 {
		dst = appendField(dst, start, "explains")
		dst = strconv.AppendInt(dst, int64(top.Explains), 10)
	}
	return append(dst, '}')
}

func appendField(dst []byte, start int, name string) []byte {
	if len(dst) > start {
		dst = append(dst, ',')
	}
	return append(appendJSONString(dst, name), ':')
}

func appendOrigin(dst []byte, o rules.Origin) []byte {
	name := strings.ToValidUTF8(o.Name, "\uFFFD")
	if len(name) > maxOrigin {
		name = strings.ToValidUTF8(name[:maxOrigin], "") // no half of a character
	}
	count := max(0, o.Count)
	dst = appendJSONString(append(dst, `{"name":`...), name)
	dst = strconv.AppendInt(append(dst, `,"count":`...), count, 10)
	if over := min(o.Over, count); over > 0 {
		dst = strconv.AppendInt(append(dst, `,"over":`...), over, 10)
	}
	return append(dst, '}')
}

type hotTop struct {
	Routes    []hotOrigin `json:"routes"`
	Instances []hotOrigin `json:"instances"`
	Callers   []hotOrigin `json:"callers"`
	Explains  int         `json:"explains"`
}

type hotOrigin struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Over  int64  `json:"over"`
}

var errTop = errors.New("top: a count is negative or over more than the count, or a name is too long")

// attribution checks what was read; a writer that lists more origins than
// are known here is taken at its first ones.
func (t *hotTop) attribution() (*rules.Attribution, error) {
	if t == nil {
		return nil, nil
	}
	top := &rules.Attribution{Explains: t.Explains}
	ok := t.Explains >= 0
	for _, list := range []struct {
		from []hotOrigin
		to   *[]rules.Origin
	}{{t.Routes, &top.Routes}, {t.Instances, &top.Instances}, {t.Callers, &top.Callers}} {
		for _, o := range list.from[:min(len(list.from), rules.MaxOrigins)] {
			ok = ok && len(o.Name) <= maxOrigin && o.Over >= 0 && o.Over <= o.Count
			*list.to = append(*list.to, rules.Origin(o))
		}
	}
	if !ok {
		return nil, errTop
	}
	return top, nil
}
