package spoe

import (
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/cmd/internal/gateway/gatewaytest"
)

// BenchmarkDoor measures the answer to a NOTIFY, without reading and writing it.
func BenchmarkDoor(b *testing.B) {
	around := gatewaytest.New(b, gatewaytest.Rules(`{id: search, match: {route: "GET /search"}, by: [q], hot: 1000000/s, limit: {rate: 1/s}}`), gateway.Config{})
	door, err := New(gateway.DoorConfig{Decider: around.Decider, Tickets: around.Tickets})
	if err != nil {
		b.Fatal(err)
	}
	f, err := parseFrame(framed(typeNotify, get("/search?q=phone"))[lengthSize:])
	if err != nil {
		b.Fatal(err)
	}
	var room []byte
	b.ReportAllocs()
	for b.Loop() {
		if room, err = door.answer(b.Context(), room[:0], &f, defaultMaxFrame); err != nil {
			b.Fatal(err)
		}
	}
}
