package protofield

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// schema has a field of each kind.
const schema = `
name: "shop.proto" package: "shop" syntax: "proto3" dependency: "google/protobuf/wrappers.proto"
enum_type { name: "Plan" value { name: "PLAN_FREE" number: 0 } value { name: "PLAN_GOLD" number: 1 } }
message_type {
  name: "Find"
  field { name: "query" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "user" number: 2 type: TYPE_MESSAGE type_name: ".shop.User" label: LABEL_OPTIONAL }
  field { name: "ids" number: 3 type: TYPE_INT64 label: LABEL_REPEATED }
  field { name: "users" number: 4 type: TYPE_MESSAGE type_name: ".shop.User" label: LABEL_REPEATED }
  field { name: "plan" number: 5 type: TYPE_ENUM type_name: ".shop.Plan" label: LABEL_OPTIONAL }
  field { name: "raw" number: 6 type: TYPE_BYTES label: LABEL_OPTIONAL }
  field { name: "exact" number: 7 type: TYPE_BOOL label: LABEL_OPTIONAL }
  field { name: "price" number: 8 type: TYPE_DOUBLE label: LABEL_OPTIONAL }
  field { name: "ratio" number: 9 type: TYPE_FLOAT label: LABEL_OPTIONAL }
  field { name: "big" number: 10 type: TYPE_UINT64 label: LABEL_OPTIONAL }
  field { name: "page" number: 11 type: TYPE_INT32 label: LABEL_OPTIONAL proto3_optional: true oneof_index: 0 }
  field { name: "labels" number: 12 type: TYPE_MESSAGE type_name: ".shop.Find.LabelsEntry" label: LABEL_REPEATED }
  field { name: "by_name" number: 13 type: TYPE_MESSAGE type_name: ".shop.Find.ByNameEntry" label: LABEL_REPEATED }
  field { name: "wrapped" number: 14 type: TYPE_MESSAGE type_name: ".google.protobuf.Int64Value" label: LABEL_OPTIONAL }
  nested_type {
    name: "LabelsEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL }
  }
  nested_type {
    name: "ByNameEntry" options { map_entry: true }
    field { name: "key" number: 1 type: TYPE_INT32 label: LABEL_OPTIONAL }
    field { name: "value" number: 2 type: TYPE_MESSAGE type_name: ".shop.User" label: LABEL_OPTIONAL }
  }
  oneof_decl { name: "_page" }
}
message_type {
  name: "User"
  field { name: "id" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
  field { name: "friend" number: 2 type: TYPE_MESSAGE type_name: ".shop.User" label: LABEL_OPTIONAL }
}`

func find(tb testing.TB, text string) proto.Message {
	tb.Helper()
	_ = wrapperspb.File_google_protobuf_wrappers_proto // is linked
	var file descriptorpb.FileDescriptorProto
	if err := prototext.Unmarshal([]byte(schema), &file); err != nil {
		tb.Fatal(err)
	}
	made, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	if err != nil {
		tb.Fatal(err)
	}
	m := dynamicpb.NewMessage(made.Messages().ByName("Find"))
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		tb.Fatal(err)
	}
	return m
}

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		message, name string
		want          []string
	}{
		{`query: "a b"`, "query", []string{"a b"}},
		{`query: "a"`, "Query", nil},
		{`query: "a"`, "query.x", nil},
		{`query: "a"`, "", nil},
		{`query: "a"`, "query.", []string{"a"}},
		{``, "query", nil},
		{`user { id: "7" }`, "user.id", []string{"7"}},
		{`user { id: "7" }`, "user", nil},
		{`user { friend { friend { id: "9" } } }`, "user.friend.friend.id", []string{"9"}},
		{`user { }`, "user.friend.id", nil},
		{`ids: 3 ids: -1 ids: 3`, "ids", []string{"3", "-1", "3"}},
		{`users { id: "1" } users { } users { id: "2" }`, "users.id", []string{"1", "2"}},
		{`plan: PLAN_GOLD`, "plan", []string{"PLAN_GOLD"}},
		{`plan: 7`, "plan", []string{"7"}},
		{`plan: PLAN_FREE`, "plan", nil},
		{`raw: "\xff\x00"`, "raw", []string{"/wA="}},
		{`exact: true`, "exact", []string{"true"}},
		{`price: 1.5`, "price", []string{"1.5"}},
		{`price: inf`, "price", []string{"+Inf"}},
		{`ratio: 0.1`, "ratio", []string{"0.1"}},
		{`big: 18446744073709551615`, "big", []string{"18446744073709551615"}},
		{`page: 0`, "page", []string{"0"}},
		{`labels { key: "b" value: "2" } labels { key: "a" value: "1" } labels { key: "c" }`, "labels", []string{"1", "2", ""}},
		{`by_name { key: 1 value { id: "x" } } by_name { key: -1 value { id: "y" } }`, "by_name.id", []string{"y", "x"}},
		{`wrapped { value: 5 }`, "wrapped", []string{"5"}},
		{`wrapped { }`, "wrapped", []string{"0"}},
		{``, "wrapped", nil},
		{`wrapped { value: 5 }`, "wrapped.value", []string{"5"}},
	} {
		if got := Append(nil, find(t, c.message), c.name); !slices.Equal(got, c.want) {
			t.Errorf("%s of %s: %q, want %q", c.name, c.message, got, c.want)
		}
	}
	if got := Append([]string{"kept"}, find(t, `query: "a"`), "query"); !slices.Equal(got, []string{"kept", "a"}) {
		t.Errorf("%q", got)
	}
	if got := Append(nil, nil, "query"); got != nil {
		t.Errorf("of nothing: %q", got)
	}
	if got := Append(nil, (*descriptorpb.FileDescriptorProto)(nil), "name"); got != nil {
		t.Errorf("of a nil message: %q", got)
	}
}

// A field with many values is limited to the first ones.
func TestAppendIsBounded(t *testing.T) {
	for name, one := range map[string]string{"ids": "ids: 1\n", "users.id": "users { id: \"1\" }\n"} {
		if got := Append(nil, find(t, strings.Repeat(one, 5*MaxValues)), name); len(got) != MaxValues {
			t.Errorf("%s: %d values", name, len(got))
		}
	}
	var labels strings.Builder
	for i := range 5 * MaxValues {
		fmt.Fprintf(&labels, "labels { key: \"%d\" value: \"%d\" }\n", i, i)
	}
	m := find(t, labels.String())
	first := Append(nil, m, "labels")
	if again := Append(nil, m, "labels"); len(first) != MaxValues || !slices.Equal(first, again) {
		t.Errorf("%q,\nthen %q", first, again)
	}
}

// byJSON reads a field from the message's JSON.
func byJSON(value any, names []string) (found []string) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			found = append(found, byJSON(one, names)...)
		}
	case map[string]any:
		if len(names) > 0 {
			return byJSON(v[names[0]], names[1:])
		}
	case nil:
	default:
		if len(names) == 0 {
			return []string{fmt.Sprint(v)}
		}
	}
	return found
}

// Each field of any message has the value that it has in the message's JSON.
func FuzzAppend(f *testing.F) {
	for _, name := range []string{"name", "message_type.field.name", "message_type.field.label", "enum_type.value.number", "options.java_package", "public_dependency", "message_type.extension_range.start", "options.uninterpreted_option.string_value", "source_code_info.location.path", "a.b"} {
		data, err := proto.Marshal(protodesc.ToFileDescriptorProto(descriptorpb.File_google_protobuf_descriptor_proto))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, name)
		f.Add([]byte{}, name)
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		var m descriptorpb.FileDescriptorProto
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		got := Append(nil, &m, name)
		if len(got) > MaxValues {
			t.Fatalf("%d values", len(got))
		}
		names := strings.Split(name, ".")
		if names[len(names)-1] == "" || strings.Contains(name, "double_value") { // is left out; is written in another way
			return
		}
		text, err := protojson.MarshalOptions{UseProtoNames: true, AllowPartial: true}.Marshal(&m)
		if err != nil {
			return
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		var value any
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		want := byJSON(value, names)
		if len(want) > MaxValues {
			want = want[:MaxValues]
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s of %s: %q, want %q", name, text, got, want)
		}
	})
}
