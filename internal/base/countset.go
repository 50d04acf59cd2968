package base

import (
	"reflect"
	"sync/atomic"
)

// LoadCounters returns the values of the counters in from. A package declares its counters once,
// in a struct whose numbers have the type parameter N:
//
//	type Counters[N any] struct {
//		Packets, Lines N
//		Refused        [3]N // by reason
//	}
//
// Counters[atomic.Int64] counts, and Counters[int64] has the values. So a new counter is one
// field, and needs no line of its own where counters are read or added up.
//
// To is the struct of From with int64 instead of [atomic.Int64]. LoadCounters is safe for
// concurrent use with the counters. It panics if the two structs differ in anything else.
func LoadCounters[To, From any](from *From) (to To) {
	loadCounters(reflect.ValueOf(&to).Elem(), reflect.ValueOf(from).Elem())
	return to
}

func loadCounters(to, from reflect.Value) {
	if counter, ok := from.Addr().Interface().(*atomic.Int64); ok {
		to.SetInt(counter.Load())
		return
	}
	for i := range parts(from) {
		loadCounters(part(to, i), part(from, i))
	}
}

// AddCounters adds each number of more to the same number of sum.
func AddCounters[T any](sum, more *T) {
	addCounters(reflect.ValueOf(sum).Elem(), reflect.ValueOf(more).Elem())
}

func addCounters(sum, more reflect.Value) {
	if sum.CanInt() {
		sum.SetInt(sum.Int() + more.Int())
		return
	}
	for i := range parts(sum) {
		addCounters(part(sum, i), part(more, i))
	}
}

// parts returns the number of fields of a struct, or of elements of an array.
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
