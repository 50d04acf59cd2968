package spoe

import (
	"strings"
)

// hello is the content of a HAPROXY-HELLO frame.
type hello struct {
	versions     string
	frameSize    uint64
	capabilities string
	healthcheck  bool
	engine       string

	hasFrameSize, hasCapabilities bool
}

// parseHello parses the payload of a HAPROXY-HELLO. It returns an error if the door does not
// support what HAProxy needs.
func parseHello(payload []byte) (h hello, err error) {
	r := payloadReader{unread: payload}
	for len(r.unread) > 0 && !r.bad {
		name := string(r.text())
		v := r.value()
		switch {
		case r.bad:
		case name == "supported-versions" && v.kind == kindString:
			h.versions = string(v.bytes)
		case name == "max-frame-size" && v.kind == kindUint32:
			h.frameSize, h.hasFrameSize = uint64(v.number), true
		case name == "capabilities" && v.kind == kindString:
			h.capabilities, h.hasCapabilities = string(v.bytes), true
		case name == "healthcheck" && v.kind == kindBool:
			h.healthcheck = v.number != 0
		case name == "engine-id" && v.kind == kindString:
			h.engine = string(v.bytes)
		}
	}
	switch {
	case r.bad:
		return h, broken(statusInvalid)
	case h.versions == "":
		return h, broken(statusNoVersion)
	case !supportsTwo(h.versions):
		return h, broken(statusBadVersion)
	case !h.hasFrameSize:
		return h, broken(statusNoFrameSize)
	case h.frameSize < minFrameSize:
		return h, broken(statusBadFrameSize)
	case !h.hasCapabilities:
		return h, broken(statusNoCapability)
	}
	return h, nil
}

// supportsTwo reports whether a list of versions, such as "2.0, 1.5", has one with major version
// 2. A peer with version 2.1 also supports 2.0.
func supportsTwo(versions string) bool {
	for version := range strings.SplitSeq(versions, ",") {
		if major, _, found := strings.Cut(strings.TrimSpace(version), "."); found && major == "2" {
			return true
		}
	}
	return false
}

// has reports whether HAProxy has the capability.
func (h *hello) has(capability string) bool {
	for c := range strings.SplitSeq(h.capabilities, ",") {
		if strings.TrimSpace(c) == capability {
			return true
		}
	}
	return false
}

// appendAgentHello appends the answer to a HAPROXY-HELLO. The door uses only the capability
// pipelining, by which a connection can have many requests in flight.
func appendAgentHello(b []byte, h *hello, frameSize int) []byte {
	capabilities := ""
	if h.has("pipelining") {
		capabilities = "pipelining"
	}
	begin := len(b)
	b = appendHead(b, typeAgentHello, 0, 0)
	b = appendString(appendText(b, "version"), "2.0")
	b = appendUint32(appendText(b, "max-frame-size"), uint32(frameSize))
	b = appendString(appendText(b, "capabilities"), capabilities)
	putLength(b[begin:])
	return b
}
