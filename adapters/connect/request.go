package hpconnect

import (
	"context"
	"net/http"
	"net/url"

	"connectrpc.com/connect"
)

// request returns a call as the HTTP request that was sent, but without the message. origin
// is a connect.AnyRequest or a connect.StreamingHandlerConn.
func request(ctx context.Context, origin any) *http.Request {
	var (
		procedure string
		peer      connect.Peer
		header    http.Header
		method    = http.MethodPost
	)
	switch call := origin.(type) {
	case connect.AnyRequest:
		procedure, peer, header, method = call.Spec().Procedure, call.Peer(), call.Header(), call.HTTPMethod()
	case connect.StreamingHandlerConn:
		procedure, peer, header = call.Spec().Procedure, call.Peer(), call.RequestHeader()
	}
	r := &http.Request{
		Method: method, URL: &url.URL{Path: procedure, RawQuery: peer.Query.Encode()},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, // connect does not report the version
		Header: header, Host: header.Get("Host"), RemoteAddr: peer.Addr, Body: http.NoBody,
	}
	return r.WithContext(ctx)
}
