// Package countset reads and adds up counters that a package declares once, in a struct
// whose numbers have the type parameter N:
//
//	type Counters[N any] struct {
//		Packets, Lines N
//		Refused        [3]N // by reason
//	}
//
// Counters[atomic.Int64] counts, and Counters[int64] is what was counted. So a new counter
// is one field: it needs no line of its own where counters are read or added up.
package countset

import (
	"reflect"
	"sync/atomic"
)

// Load returns what from has counted. To is the struct of From with int64 in place of
// [atomic.Int64]. Load is safe for concurrent use with the counters; it panics if the two
// structs differ in anything else.
func Load[To, From any](from *From) (to To) {
	load(reflect.ValueOf(&to).Elem(), reflect.ValueOf(from).Elem())
	return to
}

func load(to, from reflect.Value) {
	if counter, ok := from.Addr().Interface().(*atomic.Int64); ok {
		to.SetInt(counter.Load())
		return
	}
	for i := range parts(from) {
		load(part(to, i), part(from, i))
	}
}

// Add adds each number of more to that of sum.
func Add[T any](sum, more *T) {
	add(reflect.ValueOf(sum).Elem(), reflect.ValueOf(more).Elem())
}

func add(sum, more reflect.Value) {
	if sum.CanInt() {
		sum.SetInt(sum.Int() + more.Int())
		return
	}
	for i := range parts(sum) {
		add(part(sum, i), part(more, i))
	}
}

// parts returns how many fields a struct has, or elements an array.
func parts(v reflect.Value) int {
	if v.Kind() == reflect.Array {
		return v.Len()
	}
	return v.NumField()
}

func part(v reflect.Value, i int) reflect.Value {
	if v.Kind() == reflect.Array {
		return v.Index(i)
	}
	return v.Field(i)
}
