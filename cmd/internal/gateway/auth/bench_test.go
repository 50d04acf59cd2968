package auth

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
)

// BenchmarkDoor measures a subrequest over a kept connection, including the client's part of it.
func BenchmarkDoor(b *testing.B) {
	f := open(b, `  - {id: search, match: {route: "GET /search"}, by: [q], hot: 1000000/s, limit: {rate: 1/s}}`+"\n", gateway.DoorConfig{})
	conn, err := net.Dial("tcp", f.Addr)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	const text = "GET /forwarded HTTP/1.1\r\nHost: a\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /search?q=phone\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n"
	b.ReportAllocs()
	for b.Loop() {
		if _, err := io.WriteString(conn, text); err != nil {
			b.Fatal(err)
		}
		response, err := http.ReadResponse(in, nil)
		if err != nil || response.StatusCode != http.StatusOK {
			b.Fatal(response, err)
		}
		response.Body.Close()
	}
}
