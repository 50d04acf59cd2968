package spoe

import (
	"net/http"
	"strings"
	"time"
)

// maxMessages is the maximum number of messages of one frame. HAProxy sends one message for each
// spoe-message of an event.
const maxMessages = 16

// eachMessage calls f with the name and the arguments of each message in a NOTIFY's payload. It
// uses the memory of args, and returns it for reuse. It may return an error for an invalid payload
// after some calls.
func eachMessage(payload []byte, args []arg, f func(name []byte, args []arg)) ([]arg, error) {
	r := payloadReader{unread: payload}
	for count := 0; len(r.unread) > 0; count++ {
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
	timeout     time.Duration // zero means Config.Timeout
	hold        bool          // a done message will report the end of the request
}

// parse parses the arguments of a check, and reports whether they are valid and include the method
// and the URI. It ignores unknown arguments, so that a configuration can be newer than the door.
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

// addNamed parses an argument whose name includes that of a header or a parameter, such as
// header.X-Tenant or ctx.tenant.
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

// done is a message that reports the end of a request.
type done struct {
	ticket string
	bytes  int64
	units  int64
	ms     int64
	hasMs  bool
}

// parse parses the arguments of a done message, and reports whether they include a ticket.
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
