package main

import (
	"reflect"
	"testing"

	"github.com/hotparam/hotparam/hotkeys"
)

// What publishers of partitions that went have counted stays, all of it.
func TestAddCounters(t *testing.T) {
	var one, sum hotkeys.PublisherStats
	fields := reflect.ValueOf(&one).Elem()
	for i := range fields.NumField() {
		if fields.Field(i).Kind() == reflect.Uint64 {
			fields.Field(i).SetUint(1)
		}
	}
	for i := range one.Healed {
		one.Healed[i] = 1
	}
	addCounters(&sum, one)
	addCounters(&sum, one)
	for name, n := range sum.Healed.All() {
		if n != 2 {
			t.Errorf("Healed %s: %d, want 2", name, n)
		}
	}
	for i := range fields.NumField() {
		if got := reflect.ValueOf(sum).Field(i); got.Kind() == reflect.Uint64 && got.Uint() != 2 {
			t.Errorf("%s: %d, want 2", fields.Type().Field(i).Name, got.Uint())
		}
	}
}
