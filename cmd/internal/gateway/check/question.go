package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// question is the body of a check: an HTTP request, given by method and uri, or an access to a
// resource, given by resource and params.
type question struct {
	Method  string            `json:"method"`
	URI     string            `json:"uri"`
	Headers map[string]values `json:"headers"`
	Addr    string            `json:"addr"`
	Step    step              `json:"step"`

	Resource string          `json:"resource"`
	Params   []resourceParam `json:"params"`

	Context map[string]string `json:"context"`
	Caller  string            `json:"caller"`
	Hold    bool              `json:"hold"`
}

// resourceParam is one parameter of a resource.
type resourceParam struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	Value  string `json:"value"`
}

// values are the values of a header, in JSON a string or a list of strings.
type values []string

// UnmarshalJSON implements json.Unmarshaler.
func (v *values) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*v = values{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return errors.New("headers: want a string or a list of strings for each name")
	}
	*v = list
	return nil
}

// step is the step of the check that is asked for, "count" or "limit"; see [middleware.Steps].
type step middleware.Steps

// UnmarshalJSON implements json.Unmarshaler.
func (s *step) UnmarshalJSON(data []byte) error {
	switch string(data) {
	case `"count"`:
		*s = step(middleware.CountStep)
	case `"limit"`:
		*s = step(middleware.LimitStep)
	default:
		return errors.New(`step: want "count" in front of a cache, or "limit" behind it`)
	}
	return nil
}

// checkBatch is the body of a batch of checks.
type checkBatch struct {
	Checks []question `json:"checks"`
}

// maxBatch is the maximum number of checks of a batch.
const maxBatch = 100

// maxParams is the maximum number of parameters of a resource.
const maxParams = 1000

func (b *checkBatch) validate() error {
	if n := len(b.Checks); n == 0 || n > maxBatch {
		return fmt.Errorf("checks: want 1 to %d, found %d", maxBatch, n)
	}
	for i := range b.Checks {
		if err := b.Checks[i].validate(); err != nil {
			return fmt.Errorf("checks[%d]: %w", i, err)
		}
	}
	return nil
}

func (q *question) validate() error {
	isRequest := q.Method != "" || q.URI != "" || q.Headers != nil || q.Addr != "" || q.Step != 0
	isResource := q.Resource != "" || q.Params != nil
	switch {
	case isRequest == isResource:
		return errors.New("want either method and uri, or resource and params")
	case isRequest && (q.Method == "" || q.URI == ""):
		return errors.New("method or uri is missing")
	case isResource && q.Resource == "":
		return errors.New("resource is missing")
	case isRequest && !isMethod(q.Method):
		return fmt.Errorf("method %.32q: want a word such as GET", q.Method)
	case isRequest && q.URI != "*" && q.Method != http.MethodConnect && q.URI[0] != '/' && !strings.Contains(q.URI, "://"):
		return errors.New("uri: want the path and the query of the request, such as /search?q=phone, or an absolute URI")
	case len(q.Params) > maxParams:
		return fmt.Errorf("params: want %d at most, found %d", maxParams, len(q.Params))
	}
	for i, p := range q.Params {
		if p.Name == "" {
			return fmt.Errorf("params[%d]: name is missing", i)
		}
		if _, known := sourceOf(p.Source); !known {
			return fmt.Errorf("params[%d]: source %.32q is not known: want query, path, header, cookie, addr, form, json, ctx or rpc", i, p.Source)
		}
	}
	return nil
}

// sourceOf returns the source with the name, and whether it exists. An empty name means
// [rules.Query].
func sourceOf(name string) (rules.Source, bool) {
	if name == "" {
		return rules.Query, true
	}
	return rules.ParseSource(name)
}

func isMethod(s string) bool {
	return strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~") == ""
}

func (q *question) params() []rules.Param {
	all := make([]rules.Param, 0, len(q.Params))
	for _, p := range q.Params {
		source, _ := sourceOf(p.Source)
		all = append(all, rules.Param{Source: source, Name: p.Name, Value: p.Value})
	}
	return all
}

func (q *question) header() http.Header {
	h := make(http.Header, len(q.Headers))
	for name, list := range q.Headers {
		for _, value := range list {
			h.Add(name, value)
		}
	}
	return h
}

// done is the body of a report that a held request has ended.
type done struct {
	Ticket string  `json:"ticket"`
	Bytes  int64   `json:"bytes"`
	MS     float64 `json:"ms"`
	Units  int64   `json:"units"`
}

func (d *done) validate() error {
	switch {
	case d.Ticket == "":
		return errors.New("ticket is missing")
	case d.Bytes < 0 || d.MS < 0 || d.Units < 0:
		return errors.New("bytes, ms and units: want 0 or more")
	}
	return nil
}

func (d *done) cost() middleware.Cost {
	const longest = float64(math.MaxInt64 / 2)
	return middleware.Cost{Bytes: d.Bytes, Units: d.Units, Time: time.Duration(min(d.MS*float64(time.Millisecond), longest))}
}

// fields are the names of all fields of bodies.
var fields = []string{"method", "uri", "headers", "addr", "step", "resource", "params", "source", "name", "value", "context", "caller", "hold", "checks", "ticket", "bytes", "ms", "units"}

// withNearest adds the most similar field name to the error of an unknown field.
func withNearest(err error) error {
	if _, name, ok := strings.Cut(err.Error(), "json: unknown field "); ok {
		if nearest := base.NearestWord(strings.ToLower(strings.Trim(name, `"`)), fields); nearest != "" {
			return fmt.Errorf("%w: did you mean %q?", err, nearest)
		}
	}
	return err
}

// decode decodes and validates a single JSON value. It rejects unknown fields.
func decode(r io.Reader, to interface{ validate() error }) error {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return withNearest(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) || errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		return errors.New("there is more behind the JSON value")
	}
	return to.validate()
}
