package rls

import (
	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// codec is the protobuf codec, but accepts strings that are not UTF-8. Envoy copies its clients'
// headers, which may hold any byte, into descriptors. If such a call failed, Envoy would let the
// request pass, and a client could evade every limit with one byte.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements [encoding.CodecV2].
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	req, isRequest := v.(*ratelimit.RateLimitRequest)
	if err == nil || !isRequest {
		return err
	}
	req.Reset()
	if !readRequest(data.Materialize(), req) {
		return err
	}
	return nil
}

// fields calls number for each varint field and text for each length-delimited field of a
// message, and reports whether the message is valid.
func fields(b []byte, number func(field protowire.Number, value uint64), text func(field protowire.Number, value []byte) (ok bool)) bool {
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		b = b[n:]
		switch kind {
		case protowire.VarintType:
			var value uint64
			if value, n = protowire.ConsumeVarint(b); n >= 0 {
				number(field, value)
			}
		case protowire.BytesType:
			var value []byte
			if value, n = protowire.ConsumeBytes(b); n >= 0 && !text(field, value) {
				return false
			}
		default:
			n = protowire.ConsumeFieldValue(field, kind, b)
		}
		if n < 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// readRequest reads a RateLimitRequest without the limits of its descriptors, which are ignored.
func readRequest(b []byte, req *ratelimit.RateLimitRequest) bool {
	return fields(b, func(field protowire.Number, value uint64) {
		if field == 3 {
			req.HitsAddend = uint32(value)
		}
	}, func(field protowire.Number, value []byte) bool {
		switch field {
		case 1:
			req.Domain = string(value)
		case 2:
			d := new(common.RateLimitDescriptor)
			req.Descriptors = append(req.Descriptors, d)
			return readDescriptor(value, d)
		}
		return true
	})
}

func readDescriptor(b []byte, d *common.RateLimitDescriptor) bool {
	return fields(b, func(field protowire.Number, value uint64) {
		if field == 4 {
			d.IsNegativeHits = value != 0
		}
	}, func(field protowire.Number, value []byte) bool {
		switch field {
		case 1:
			e := new(common.RateLimitDescriptor_Entry)
			d.Entries = append(d.Entries, e)
			return readEntry(value, e)
		case 3:
			d.HitsAddend = new(wrapperspb.UInt64Value)
			return proto.Unmarshal(value, d.HitsAddend) == nil
		}
		return true
	})
}

func readEntry(b []byte, e *common.RateLimitDescriptor_Entry) bool {
	return fields(b, func(protowire.Number, uint64) {}, func(field protowire.Number, value []byte) bool {
		switch field {
		case 1:
			e.Key = string(value)
		case 2:
			e.Value = string(value)
		}
		return true
	})
}
