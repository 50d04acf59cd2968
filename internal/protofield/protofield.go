// Package protofield reads fields of protobuf messages by their names, for rules with RPC
// parameters. The adapters of RPC frameworks share it.
package protofield

import (
	"cmp"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MaxValues bounds the values that are read from one field. A guard makes fewer keys of them,
// and one for all others.
const MaxValues = 100

// Append appends the values of a message's field to values. name is the name in the .proto file,
// with a dot before each field of a nested message: "user.id". Each element of a repeated field
// is a value, and so is each value of a map, in the order of the map's keys.
//
// A value is written as in the JSON mapping of protobuf, without quotes: an enum by its name,
// bytes in base64, a number in decimal, a wrapper as the value that it wraps. A field that is
// not set has no value. Neither has a field that does not exist, or a whole message. In proto3 a
// field without "optional" that is 0 or empty is not set.
func Append(values []string, m proto.Message, name string) []string {
	if m == nil {
		return values
	}
	w := walk{values: values, room: MaxValues}
	w.message(m.ProtoReflect(), name)
	return w.values
}

// walk is the state of a walk through a message.
type walk struct {
	values []string
	room   int // number of values that may still be added
}

// message reads the field of m with this name.
func (w *walk) message(m protoreflect.Message, name string) {
	name, path, _ := strings.Cut(name, ".")
	field := m.Descriptor().Fields().ByName(protoreflect.Name(name))
	if field == nil || !m.Has(field) {
		return
	}
	switch value := m.Get(field); {
	case field.IsList():
		list := value.List()
		for i := 0; i < list.Len() && w.room > 0; i++ {
			w.value(field, list.Get(i), path)
		}
	case field.IsMap():
		w.dict(field.MapValue(), value.Map(), path)
	default:
		w.value(field, value, path)
	}
}

// dict reads the values of a map.
func (w *walk) dict(field protoreflect.FieldDescriptor, m protoreflect.Map, path string) {
	keys := make([]protoreflect.MapKey, 0, m.Len())
	for key := range m.Range {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return cmp.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if w.room <= 0 {
			return
		}
		w.value(field, m.Get(key), path)
	}
}

// value reads one value of a field, or the field that path names within it.
func (w *walk) value(field protoreflect.FieldDescriptor, value protoreflect.Value, path string) {
	inner := field.Message()
	switch {
	case inner == nil && path == "":
		w.add(text(field, value))
	case inner == nil: // a scalar has no fields
	case path != "":
		w.message(value.Message(), path)
	case isWrapper(inner):
		wrapped := inner.Fields().ByName("value")
		w.add(text(wrapped, value.Message().Get(wrapped)))
	}
}

func (w *walk) add(value string) {
	w.values = append(w.values, value)
	w.room--
}

// text returns a value that is not a message.
func text(field protoreflect.FieldDescriptor, value protoreflect.Value) string {
	switch field.Kind() {
	case protoreflect.EnumKind:
		if known := field.Enum().Values().ByNumber(value.Enum()); known != nil {
			return string(known.Name())
		}
		return strconv.Itoa(int(value.Enum()))
	case protoreflect.BytesKind:
		return base64.StdEncoding.EncodeToString(value.Bytes())
	case protoreflect.FloatKind:
		return strconv.FormatFloat(value.Float(), 'g', -1, 32)
	case protoreflect.DoubleKind:
		return strconv.FormatFloat(value.Float(), 'g', -1, 64)
	}
	return value.String()
}

// isWrapper reports whether the message type is a well-known wrapper of one value.
func isWrapper(m protoreflect.MessageDescriptor) bool {
	if m.FullName().Parent() != "google.protobuf" {
		return false
	}
	switch m.Name() {
	case "DoubleValue", "FloatValue", "Int64Value", "UInt64Value", "Int32Value", "UInt32Value", "BoolValue", "StringValue", "BytesValue":
		return true
	}
	return false
}
