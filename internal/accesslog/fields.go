package accesslog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
)

// Fields are the places of the fields in the lines of a log. In JSON a place is a path
// (request.uri; a dot within a name is written \.). In delimited lines it is the number of a
// column, from 1, or its name in the heading.
type Fields struct {
	places []fieldPlace
	clock  clockFormat
	unit   time.Duration
}

type fieldPlace struct {
	role  role
	value string // "header:x-tenant", "cookie:id", or empty
	where string
}

// FieldsHelp describes the fields that [ParseFields] accepts.
const FieldsHelp = "time, date, method, uri, path, query, request, caller, status, bytes, duration (or duration_ms, _us, _ns), header:NAME, cookie:NAME"

// ParseFields parses places such as "time=ts,method=request.method,uri=request.uri", and the
// format of their time. An empty clock means any known format. A comma in a place is written \,
// and a later place of the same field is used if the line does not have an earlier one.
func ParseFields(list, clock string) (*Fields, error) {
	f := &Fields{unit: time.Second}
	var err error
	if f.clock, err = parseClockFormat(clock); err != nil {
		return nil, err
	}
	for _, item := range splitEscaped(list) {
		name, where, found := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		if !found || where == "" {
			return nil, fmt.Errorf("field %q: write it as NAME=PLACE, such as uri=request.uri", item)
		}
		p := fieldPlace{role: noRole, where: where}
		units := map[string]time.Duration{"duration_s": time.Second, "duration_ms": time.Millisecond, "duration_us": time.Microsecond, "duration_ns": time.Nanosecond}
		if unit, ok := units[name]; ok {
			name, f.unit = "duration", unit
		}
		source, value, hasValue := strings.Cut(name, ":")
		switch i := slices.Index(roleNames[:], name); {
		case i >= 0:
			p.role = role(i)
		case hasValue && value != "" && source == "header":
			p.value = "header:" + strings.ToLower(value)
		case hasValue && value != "" && source == "cookie":
			p.value = name
		default:
			return nil, fmt.Errorf("field %q is unknown; known are %s", name, FieldsHelp)
		}
		f.places = append(f.places, p)
	}
	has := func(r role) bool {
		return slices.ContainsFunc(f.places, func(p fieldPlace) bool { return p.role == r })
	}
	switch {
	case !has(roleTime):
		return nil, errors.New("no field has the time; add time=PLACE")
	case !has(roleRequest) && !(has(roleMethod) && (has(roleURI) || has(rolePath))):
		return nil, errors.New("no field has the request; add method=PLACE and uri=PLACE (or path and query), or request=PLACE for GET /search?q=phone HTTP/1.1")
	}
	return f, nil
}

// splitEscaped splits at commas without a backslash before them.
func splitEscaped(s string) []string {
	var items []string
	var item strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s) && s[i+1] == ',':
			item.WriteByte(',')
			i++
		case s[i] == ',':
			items = append(items, item.String())
			item.Reset()
		default:
			item.WriteByte(s[i])
		}
	}
	return append(items, item.String())
}

// shape returns the shape of the fields in JSON or in delimited lines. Columns that have a name
// are found in the heading.
func (f *Fields) shape(delimited bool, values []string) (*shape, error) {
	s := &shape{root: newNode(), clock: f.clock, unit: f.unit, values: len(values), forwarded: true}
	var ranks [roles + 1]uint8
	for _, p := range f.places {
		value := -1
		if p.role == noRole {
			if value = slices.Index(values, p.value); value < 0 {
				continue // not wanted
			}
		}
		rank := ranks[p.role]
		ranks[p.role]++
		if delimited {
			c := wantedColumn{name: p.where, number: -1, role: p.role, rank: rank, value: value}
			if n, err := strconv.Atoi(p.where); err == nil {
				if n < 1 || n > maxColumns {
					return nil, fmt.Errorf("column %d: columns are numbered from 1 to %d", n, maxColumns)
				}
				c.name, c.number = "", n-1
			}
			s.columns = append(s.columns, c)
			continue
		}
		steps, message := base.ParseJSONPath(p.where)
		n := s.root
		for _, step := range steps {
			if step.Element {
				message = "a star is not needed: of an array the first element is taken"
			}
			n = n.child(step.Name)
		}
		if message != "" {
			return nil, fmt.Errorf("field %q: %s", p.where, message)
		}
		if n.role != noRole || n.value >= 0 {
			return nil, fmt.Errorf("field %q is given twice", p.where)
		}
		n.role, n.rank, n.value = p.role, rank, value
	}
	return s, nil
}
