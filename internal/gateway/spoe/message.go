package spoe

import (
	"net/http"
	"strings"
	"time"
)

// maxMessages and maxArgs bound what one frame may ask for. HAProxy sends a message for each
// spoe-message of an event.
const maxMessages = 16

// eachMessage calls f with the name and the arguments of each message of a NOTIFY's payload.
// It returns an error if the payload is not valid, which may be after some calls.
func eachMessage(payload []byte, args []arg, f func(name []byte, args []arg)) ([]arg, error) {
	r := reader{rest: payload}
	for count := 0; len(r.rest) > 0; count++ {
		name := r.text()
		n := int(r.byte())
		args = args[:0]
		for range n {
			if r.bad {
				break
			}
			args = append(args, arg{name: r.text(), value: r.value()})
		}
		if r.bad || count == maxMessages {
			return args, broken(statusInvalid)
		}
		f(name, args)
	}
	return args, nil
}

// arg is one argument of a message.
type arg struct {
	name  []byte
	value value
}

// check is a message that asks for a decision.
type check struct {
	method, uri string
	addr        string
	caller      string
	header      http.Header
	context     map[string]string
	timeout     time.Duration // zero: the door's
	hold        bool          // a message done will end the request
}

// parse reads the arguments of a check. It reports whether they say what the request is.
// Arguments that it does not know are ignored, so that a configuration can be ahead of the
// door.
func (c *check) parse(args []arg) bool {
	for i := range args {
		name, v := args[i].name, &args[i].value
		if v.kind == kindNull {
			continue
		}
		switch string(name) {
		case "method":
			c.method = v.text()
		case "uri":
			c.uri = v.text()
		case "src":
			c.addr = v.text()
		case "caller":
			c.caller = v.text()
		case "headers":
			if c.header == nil {
				c.header = make(http.Header, 16)
			}
			if !addHeaders(c.header, v) {
				return false
			}
		case "timeout":
			if ms, ok := v.int(); ok && ms > 0 {
				c.timeout = time.Duration(min(ms, maxTimeout.Milliseconds())) * time.Millisecond
			}
		case "hold":
			n, ok := v.int()
			c.hold = ok && n != 0
		default:
			c.addNamed(string(name), v)
		}
	}
	return c.method != "" && c.uri != ""
}

// addNamed takes the arguments whose names have a name in them: header.X-Tenant and
// ctx.tenant.
func (c *check) addNamed(name string, v *value) {
	source, name, found := strings.Cut(name, ".")
	if !found || name == "" {
		return
	}
	switch source {
	case "header":
		if c.header == nil {
			c.header = make(http.Header, 4)
		}
		c.header.Add(name, v.text())
	case "ctx":
		if c.context == nil {
			c.context = make(map[string]string, 4)
		}
		c.context[name] = v.text()
	}
}

// done is a message that ends a request.
type done struct {
	ticket string
	bytes  int64
	units  int64
	ms     int64
	hasMs  bool
}

// parse reads the arguments of a done. It reports whether they name a ticket.
func (d *done) parse(args []arg) bool {
	for i := range args {
		v := &args[i].value
		n, isNumber := v.int()
		switch string(args[i].name) {
		case "ticket":
			d.ticket = v.text()
		case "bytes":
			d.bytes = max(0, n)
		case "units":
			d.units = max(0, n)
		case "ms":
			d.ms, d.hasMs = max(0, n), isNumber
		}
	}
	return d.ticket != ""
}
