package accesslog

import (
	"bytes"
	"time"
)

// role is what a field of a log says of its request.
type role uint8

const (
	roleTime     role = iota
	roleDate          // stands before the time, in a field of its own
	roleMethod        // GET
	roleURI           // path[?query], or a URL
	rolePath          // without the query
	roleQuery         // without the question mark
	roleRequest       // GET /search?q=phone HTTP/1.1
	roleCaller        // the client's address
	roleStatus        // of the response
	roleBytes         // of the response's body
	roleDuration      // until the response was sent
	roles
	noRole = roles
)

var roleNames = [roles]string{"time", "date", "method", "uri", "path", "query", "request", "caller", "status", "bytes", "duration"}

// maxValues bounds the headers and cookies that are taken from a line.
const maxValues = 64

// texts are the fields of one line by their roles; nil where it has none. extra are the
// headers and cookies that are wanted.
type texts struct {
	of    [roles][]byte
	rank  [roles]uint8 // of the name under which it was found; lower is better
	extra [][]byte
}

func (t *texts) reset(values int) {
	t.of, t.rank = [roles][]byte{}, [roles]uint8{}
	for len(t.extra) < values {
		t.extra = append(t.extra, nil)
	}
	t.extra = t.extra[:values]
	clear(t.extra)
}

// blank is added to the rank of a value that says nothing: another name may have one that
// does.
const blank = 0x80

// set gives a role a value. A better name of it takes precedence, then the last value.
func (t *texts) set(r role, rank uint8, value []byte) {
	switch string(value) {
	case "", "-", `""`, `"-"`, "null":
		rank |= blank
	}
	if t.of[r] == nil || rank&^blank == t.rank[r]&^blank || rank < t.rank[r] {
		t.of[r], t.rank[r] = value, rank
	}
}

// complete reports whether a time and a request are there.
func (t *texts) complete() bool {
	return t.of[roleTime] != nil && (t.of[roleRequest] != nil || t.of[roleMethod] != nil && (t.of[roleURI] != nil || t.of[rolePath] != nil))
}

// request makes a request of the fields' plain texts.
func (t *texts) request(s *shape, r *request) error {
	var err error
	clock := t.of[roleTime]
	if date := t.of[roleDate]; date != nil {
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
	if addr := t.of[roleCaller]; addr != nil {
		if s.forwarded {
			addr = firstHost(addr)
		}
		if r.addr, err = parseAddr(addr); err != nil {
			return err
		}
	}
	if size := t.of[roleBytes]; size != nil {
		r.bytes = parseBytes(size)
	}
	if took := t.of[roleDuration]; took != nil {
		r.took = parseDuration(took, s.unit)
	}
	if status := t.of[roleStatus]; status != nil {
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

// target finds the method and the target: as they came, if the log has them so.
func (t *texts) target(r *request) (err error) {
	method, uri, path := t.of[roleMethod], t.of[roleURI], t.of[rolePath]
	whole := t.of[roleRequest]
	if whole != nil && (method == nil || uri == nil && (path == nil || t.rank[roleRequest] < t.rank[rolePath])) {
		return r.parseRequest(whole)
	}
	if r.method = method; !isMethod(method) {
		return errMethod
	}
	if uri == nil {
		uri = r.withQuery(path, t.of[roleQuery])
	}
	r.target, err = parseTarget(uri)
	return err
}

// withQuery joins a path and a query. Servers log the path unescaped, so what no target may
// hold is escaped again.
func (r *request) withQuery(path, query []byte) []byte {
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

// join puts two texts together.
func (r *request) join(a []byte, between string, b []byte) []byte {
	from := len(r.text)
	r.text = append(append(append(r.text, a...), between...), b...)
	return r.text[from:]
}

// firstHost is the first of some addresses with commas between them, without its port.
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

// parseDuration reads a number of units, or a text such as "45.397µs". It gives 0, which is
// unknown, for anything else.
func parseDuration(b []byte, unit time.Duration) time.Duration {
	if n, ok := decimal(b, int64(unit)); ok {
		return time.Duration(n)
	}
	if d, err := time.ParseDuration(string(b)); err == nil {
		return max(0, d)
	}
	return 0
}

// decimal reads a number without sign or exponent, in so many parts of one.
func decimal(b []byte, unit int64) (n int64, ok bool) {
	const most = 1 << 62
	whole, fraction, dotted := bytes.Cut(b, []byte{'.'})
	if len(whole) == 0 || len(whole) > 18 || dotted && len(fraction) == 0 {
		return 0, false
	}
	if n = int64(digits(whole)); n < 0 || n > most/max(1, unit) {
		return 0, false
	}
	n *= unit
	for _, c := range fraction {
		if !isDigit(c) {
			return 0, false
		}
		unit /= 10
		n += int64(c-'0') * unit
	}
	return n, true
}
