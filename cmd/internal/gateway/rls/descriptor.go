package rls

import (
	"net/http"
	"strings"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/rules"
)

// Limits on a call. The excess is ignored: Envoy's configuration sets these numbers, not its
// clients.
const (
	maxDescriptors = 32
	maxEntries     = 64   // entries of one descriptor
	maxHits        = 1000 // hits of one descriptor
)

// Domain is the domain whose descriptors describe requests.
const Domain = "hotparam"

// descriptorKind is the kind of a descriptor.
type descriptorKind uint8

const (
	toDecide descriptorKind = iota // a request, or an access to a resource
	ofEnd                          // a report of a request's end
	unusable
)

// ask is a parsed descriptor.
type ask struct {
	kind descriptorKind
	call gateway.Call // for toDecide
	id   string       // of a request, and for ofEnd
	unit string       // for ofEnd: the unit of hits
	hits int64        // for ofEnd: the cost, or -1 if it has none
}

// parse parses a descriptor of a call.
func (d *Door) parse(req *ratelimit.RateLimitRequest, desc *common.RateLimitDescriptor) (a ask) {
	entries := desc.GetEntries()
	if len(entries) > maxEntries {
		d.Fault(gateway.TooMany, "a descriptor has too many entries: only the first are used", "entries", len(entries), "used", maxEntries)
		entries = entries[:maxEntries]
	}
	if desc.GetLimit() != nil {
		d.Fault(gateway.Unsupported, "a descriptor has a limit of its own, which is ignored: limits come from the rules")
	}
	hits, explicit := hitsOf(req, desc)
	switch method, path, done := find(entries, "method"), find(entries, "path"), find(entries, "done"); {
	case done != nil:
		a.kind = ofEnd
		d.readEnd(&a, entries, done.GetValue())
		if a.hits = hits; !explicit {
			a.hits = -1
		}
		return a
	case method != nil && path != nil:
		d.readRequest(&a, entries)
	case (method != nil || path != nil) && req.GetDomain() == Domain:
		a.kind = unusable
		d.Fault(gateway.Incomplete, "a descriptor of a request needs both method and path")
		return a
	default:
		a.call.Resource, a.call.Params = req.GetDomain(), paramsOf(entries)
	}
	a.call.Peek = hits == 0
	if a.hits = hits; hits > maxHits {
		d.Fault(gateway.TooMany, "a descriptor has too many hits", "hits", hits, "used", maxHits)
		a.hits = maxHits
	}
	if desc.GetIsNegativeHits() && hits != 0 {
		a.kind = unusable
		d.Fault(gateway.Unsupported, "a descriptor has negative hits and is ignored: hits cannot be returned")
	}
	return a
}

// hitsOf returns the number of hits of a descriptor, and whether the call sets it.
func hitsOf(req *ratelimit.RateLimitRequest, desc *common.RateLimitDescriptor) (hits int64, explicit bool) {
	const maxHits = 1 << 40
	switch addend := desc.GetHitsAddend(); {
	case addend != nil:
		return int64(min(addend.GetValue(), maxHits)), true
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

// readEnd parses a descriptor that reports the end of a request.
func (d *Door) readEnd(a *ask, entries []*common.RateLimitDescriptor_Entry, unit string) {
	a.id, a.unit = find(entries, "id").GetValue(), unit
	switch unit {
	case "bytes", "ms", "units", "end", "":
	default:
		d.Fault(gateway.UnknownEntry, "an entry done has an unknown unit: want bytes, ms, units or end", "done", unit)
	}
	if a.id == "" {
		a.kind = unusable
		d.Fault(gateway.Incomplete, "a descriptor with the entry done needs the entry id of its request")
	}
}

// readRequest parses a descriptor that describes a request. If entries have the same key, the
// first counts; headers may repeat.
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
				d.Fault(gateway.UnknownEntry, "a descriptor of a request has an entry with an unknown key: the key of a header is header:NAME", "key", key)
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

// paramsOf returns the entries as parameters of a resource. A key may begin with a source, as in
// rules.
func paramsOf(entries []*common.RateLimitDescriptor_Entry) []rules.Param {
	params := make([]rules.Param, 0, len(entries))
	for _, e := range entries {
		p := rules.Param{Name: e.GetKey(), Value: e.GetValue()}
		if word, name, found := strings.Cut(p.Name, ":"); found && name != "" {
			if source, known := rules.ParseSource(word); known && word != "" {
				p.Source, p.Name = source, name
			}
		}
		params = append(params, p)
	}
	return params
}
