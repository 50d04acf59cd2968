package published

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func fieldsOf(pairs []string) map[string]any {
	fields := make(map[string]any)
	for pair := range slices.Chunk(pairs, 2) {
		fields[pair[0]] = pair[1]
	}
	return fields
}

func TestInvalidation(t *testing.T) {
	i := Invalidation{Sender: "93f0a1c2", All: true, Targets: []uint64{1, 1<<64 - 1}, Tags: []uint64{0}}
	want := []string{"sender", "93f0a1c2", "answers", "all target:0000000000000001 target:ffffffffffffffff tag:0000000000000000"}
	if got := EncodeInvalidation(&i); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	whole := Invalidation{All: true, Targets: make([]uint64, MaxInvalidation)}
	for _, i := range []Invalidation{i, whole, {Tags: []uint64{7}}, {All: true}} {
		if got, err := ParseInvalidation(fieldsOf(EncodeInvalidation(&i))); err != nil || !reflect.DeepEqual(got, i) {
			t.Errorf("%+v, %v, want %+v", got, err, i)
		}
	}
	for _, bad := range []string{"", " ", "all ", "All", "target", "target:", "target:x", "target:10000000000000000", "host:1", "1", strings.Repeat("all ", 10_000) + "all"} {
		if got, err := ParseInvalidation(map[string]any{"answers": bad}); err == nil {
			t.Errorf("%.40q: %+v", bad, got)
		}
	}
	if _, err := ParseInvalidation(map[string]any{"answers": 1}); err == nil {
		t.Error("a number is accepted")
	}
}

// No text of an entry makes the parser panic, and what it accepts is written and read again alike.
func FuzzInvalidation(f *testing.F) {
	f.Add("a", "all target:1 tag:2")
	f.Add("", "tag:ffffffffffffffff")
	f.Fuzz(func(t *testing.T, sender, answers string) {
		i, err := ParseInvalidation(map[string]any{"sender": sender, "answers": answers})
		if err != nil {
			return
		}
		if !i.All && len(i.Targets)+len(i.Tags) == 0 {
			t.Errorf("%q invalidates nothing", answers)
		}
		if len(i.Targets)+len(i.Tags) > MaxInvalidation {
			return
		}
		if again, err := ParseInvalidation(fieldsOf(EncodeInvalidation(&i))); err != nil || !reflect.DeepEqual(again, i) {
			t.Errorf("%+v, %v, was %+v", again, err, i)
		}
	})
}
