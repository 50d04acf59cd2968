package gatewaytest

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// AskThrough sends a request unchanged to the gateway at addr, and returns the client's
// response. An application behind the gateway sets the header X-App; its responses get the
// status 0.
func AskThrough(t testing.TB, addr string, r *ClientRequest) DoorAnswer {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	text := r.Method + " " + r.Target + " HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n"
	for name, values := range r.Header {
		for _, v := range values {
			text += name + ": " + v + "\r\n"
		}
	}
	if _, err := io.WriteString(conn, text+"\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: r.Method})
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	a := DoorAnswer{Status: res.StatusCode, Header: res.Header, Body: string(body)}
	if res.Header.Get("X-App") != "" {
		a.Status, a.Body = 0, ""
	}
	return a
}
