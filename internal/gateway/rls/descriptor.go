package rls

import (
	"net/http"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/internal/gateway"
)

// What a call may have. Envoy's configuration decides on their number, and not its clients; what
// is beyond is left out.
const (
	maxDescriptors = 32
	maxEntries     = 64
	maxHits        = 1000 // of one descriptor
)

// Domain is the domain whose descriptors are requests.
const Domain = "hotparam"

// kind is what a descriptor asks for.
type kind uint8

const (
	ofResource kind = iota // the parameters of a resource
	ofRequest              // a request
	ofEnd                  // the end of a request
	unusable
)

// ask is a descriptor, read.
type ask struct {
	kind   kind
	call   gateway.Call     // of a request
	params []hotparam.Param // of a resource
	id     string           // of a request, or of its end
	unit   string           // what the hits of an end count
	hits   int64            // of an end: its cost, or -1 if there is none
}

// read reads a descriptor of a call.
func (d *Door) read(req *ratelimit.RateLimitRequest, desc *common.RateLimitDescriptor) (a ask) {
	entries := desc.GetEntries()
	if len(entries) > maxEntries {
		d.fault(TooMany, "a descriptor has too many entries: the first are used", "entries", len(entries), "used", maxEntries)
		entries = entries[:maxEntries]
	}
	if desc.GetLimit() != nil {
		d.fault(Unsupported, "a descriptor has a limit of its own, which is not used: limits are those of the rules")
	}
	hits, told := hitsOf(req, desc)
	switch method, path, done := find(entries, "method"), find(entries, "path"), find(entries, "done"); {
	case done != nil:
		a.kind = ofEnd
		d.readEnd(&a, entries, done.GetValue())
		if a.hits = hits; !told {
			a.hits = -1
		}
		return a
	case method != nil && path != nil:
		a.kind = ofRequest
		d.readRequest(&a, entries)
	case (method != nil || path != nil) && req.GetDomain() == Domain:
		a.kind = unusable
		d.fault(Incomplete, "a descriptor of a request needs both method and path")
		return a
	default:
		a.params = paramsOf(entries)
	}
	if a.hits = hits; hits > maxHits {
		d.fault(TooMany, "a descriptor has too many hits", "hits", hits, "used", maxHits)
		a.hits = maxHits
	}
	if desc.GetIsNegativeHits() && hits != 0 {
		a.kind = unusable
		d.fault(Unsupported, "a descriptor has negative hits: what was taken stays taken")
	}
	return a
}

// hitsOf returns how many hits a descriptor adds, and whether the call says so.
func hitsOf(req *ratelimit.RateLimitRequest, desc *common.RateLimitDescriptor) (hits int64, told bool) {
	const most = 1 << 40
	switch own := desc.GetHitsAddend(); {
	case own != nil:
		return int64(min(own.GetValue(), most)), true
	case req.GetHitsAddend() > 0:
		return int64(req.GetHitsAddend()), true
	}
	return 1, false
}

// find returns the first entry with the key, or nil.
func find(entries []*common.RateLimitDescriptor_Entry, key string) *common.RateLimitDescriptor_Entry {
	for _, e := range entries {
		if e.GetKey() == key {
			return e
		}
	}
	return nil
}

// readEnd reads a descriptor that tells the end of a request.
func (d *Door) readEnd(a *ask, entries []*common.RateLimitDescriptor_Entry, unit string) {
	a.id, a.unit = find(entries, "id").GetValue(), unit
	switch unit {
	case "bytes", "ms", "units", "end", "":
	default:
		d.fault(UnknownEntry, "an entry done has a unit that there is not: want bytes, ms, units or end", "done", unit)
	}
	if a.id == "" {
		a.kind = unusable
		d.fault(Incomplete, "a descriptor with done needs id, by which the request was asked for")
	}
}

// readRequest reads a descriptor that is a request. Of several entries with one key the first
// counts, except that headers may repeat.
func (d *Door) readRequest(a *ask, entries []*common.RateLimitDescriptor_Entry) {
	c := &a.call
	for _, e := range entries {
		value := e.GetValue()
		switch key := e.GetKey(); key {
		case "method":
			setOnce(&c.Method, value)
		case "path":
			setOnce(&c.Target, value)
		case "id":
			setOnce(&a.id, value)
		case "caller":
			setOnce(&c.Caller, value)
		case "remote_address":
			setOnce(&c.Addr, value)
		case "content_type":
			addHeader(c, "Content-Type", value)
		default:
			switch source, name, _ := strings.Cut(key, ":"); {
			case source == "header" && name != "":
				addHeader(c, http.CanonicalHeaderKey(name), value)
			case source == "ctx" && name != "":
				if c.Context == nil {
					c.Context = make(map[string]string, 2)
				}
				c.Context[name] = value
			default:
				d.fault(UnknownEntry, "a request's descriptor has an entry that says nothing: a header's key is header:NAME", "key", key)
			}
		}
	}
}

func setOnce(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

func addHeader(c *gateway.Call, name, value string) {
	if c.Header == nil {
		c.Header = make(http.Header, 4)
	}
	c.Header[name] = append(c.Header[name], value)
}

// paramsOf returns the parameters of a resource. A key may begin with a source, as in rules.
func paramsOf(entries []*common.RateLimitDescriptor_Entry) []hotparam.Param {
	params := make([]hotparam.Param, 0, len(entries))
	for _, e := range entries {
		p := hotparam.Param{Name: e.GetKey(), Value: e.GetValue()}
		if word, name, found := strings.Cut(p.Name, ":"); found && name != "" {
			if source, known := hotparam.ParseSource(word); known && word != "" {
				p.Source, p.Name = source, name
			}
		}
		params = append(params, p)
	}
	return params
}

// fault counts a descriptor, or a part of it, that is not used.
func (d *Door) fault(f Fault, text string, args ...any) {
	d.stats.Unusable[f].Add(1)
	d.complain.add(int(f), text, args...)
}
