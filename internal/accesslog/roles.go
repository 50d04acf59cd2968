package accesslog

import (
	"bytes"
	"time"
)

// role is the meaning of a field of a log for its request.
type role uint8

const (
	roleTime     role = iota
	roleDate          // date in a field of its own, which precedes the time
	roleMethod        // GET
	roleURI           // path[?query], or a URL
	rolePath          // path without the query
	roleQuery         // query without the question mark
	roleRequest       // GET /search?q=phone HTTP/1.1
	roleCaller        // the client's address
	roleStatus        // status of the response
	roleBytes         // size of the response's body
	roleDuration      // time until the response was sent
	roles
	noRole = roles
)

var roleNames = [roles]string{"time", "date", "method", "uri", "path", "query", "request", "caller", "status", "bytes", "duration"}

// maxValues bounds the headers and cookies that are read from a line.
const maxValues = 64

// texts are the fields of one line by role, nil if missing. extra are the wanted headers and
// cookies.
type texts struct {
	byRole [roles][]byte
	rank   [roles]uint8 // rank of the name of each field; lower is better
	extra  [][]byte
}

func (t *texts) reset(values int) {
	t.byRole, t.rank = [roles][]byte{}, [roles]uint8{}
	for len(t.extra) < values {
		t.extra = append(t.extra, nil)
	}
	t.extra = t.extra[:values]
	clear(t.extra)
}

// blank is added to the rank of an empty value, since another name may have a better one.
const blank = 0x80

// set sets the value of a role. A better name takes precedence; among equals, the last value
// does.
func (t *texts) set(r role, rank uint8, value []byte) {
	switch string(value) {
	case "", "-", `""`, `"-"`, "null":
		rank |= blank
	}
	if t.byRole[r] == nil || rank&^blank == t.rank[r]&^blank || rank < t.rank[r] {
		t.byRole[r], t.rank[r] = value, rank
	}
}

// complete reports whether there are a time and a request.
func (t *texts) complete() bool {
	return t.byRole[roleTime] != nil && (t.byRole[roleRequest] != nil || t.byRole[roleMethod] != nil && (t.byRole[roleURI] != nil || t.byRole[rolePath] != nil))
}

// request sets r from the plain texts of the fields.
func (t *texts) request(s *shape, r *parsedLine) error {
	var err error
	clock := t.byRole[roleTime]
	if date := t.byRole[roleDate]; date != nil {
		clock = r.join(date, " ", clock)
		if s.clock == nil && bytes.IndexByte(clock[len(date):], 'Z') < 0 && bytes.IndexByte(clock[len(date):], '+') < 0 {
			clock = r.join(clock, "Z", nil)
		}
	}
	if r.nanos, err = s.parseClock(clock); err != nil {
		return err
	}
	if err := t.target(r); err != nil {
		return err
	}
	if addr := t.byRole[roleCaller]; addr != nil {
		if s.forwarded {
			addr = firstHost(addr)
		}
		if r.addr, err = parseAddr(addr); err != nil {
			return err
		}
	}
	if size := t.byRole[roleBytes]; size != nil {
		r.bytes = parseBytes(size)
	}
	if took := t.byRole[roleDuration]; took != nil {
		r.took = parseDuration(took, s.unit)
	}
	if status := t.byRole[roleStatus]; status != nil {
		if r.status, err = parseStatus(status); err != nil {
			return err
		}
	}
	r.values = r.values[:0]
	for _, value := range t.extra {
		r.values = appendValue(r.values, value)
	}
	return nil
}

// target sets the method and the target, if possible as the client sent them.
func (t *texts) target(r *parsedLine) (err error) {
	method, uri, path := t.byRole[roleMethod], t.byRole[roleURI], t.byRole[rolePath]
	whole := t.byRole[roleRequest]
	if whole != nil && (method == nil || uri == nil && (path == nil || t.rank[roleRequest] < t.rank[rolePath])) {
		return r.parseRequest(whole)
	}
	if r.method = method; !isMethod(method) {
		return errMethod
	}
	if uri == nil {
		uri = r.withQuery(path, t.byRole[roleQuery])
	}
	r.target, err = parseTarget(uri)
	return err
}

// withQuery joins a path and a query. Servers log the path unescaped, so characters that no
// target may contain are escaped again.
func (r *parsedLine) withQuery(path, query []byte) []byte {
	from := len(r.text)
	for _, c := range path {
		if c <= ' ' || c == 0x7f {
			r.text = append(r.text, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		} else {
			r.text = append(r.text, c)
		}
	}
	if query = bytes.TrimPrefix(query, []byte{'?'}); len(query) > 0 && string(query) != "-" && bytes.IndexByte(path, '?') < 0 {
		r.text = append(append(r.text, '?'), query...)
	}
	return r.text[from:]
}

// join concatenates two texts with between in the middle.
func (r *parsedLine) join(a []byte, between string, b []byte) []byte {
	from := len(r.text)
	r.text = append(append(append(r.text, a...), between...), b...)
	return r.text[from:]
}

// firstHost returns the first of the addresses in a comma-separated list, without its port.
func firstHost(b []byte) []byte {
	b, _, _ = bytes.Cut(b, []byte{','})
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '[' {
		if end := bytes.IndexByte(b, ']'); end > 0 {
			return b[1:end]
		}
	}
	if colon := bytes.IndexByte(b, ':'); colon > 0 && bytes.IndexByte(b[colon+1:], ':') < 0 {
		return b[:colon]
	}
	return b
}

// parseDuration parses a number of units, or a text such as "45.397µs". It returns 0, which
// means unknown, for anything else.
func parseDuration(b []byte, unit time.Duration) time.Duration {
	if n, err := decimal(b, int64(unit)); err == nil {
		return time.Duration(n)
	}
	if d, err := time.ParseDuration(string(b)); err == nil {
		return max(0, d)
	}
	return 0
}
