package hpgrpc

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// request returns the call of a context as the HTTP request that was sent, but without the
// message.
func request(ctx context.Context, _ any) *http.Request {
	method, _ := grpc.Method(ctx)
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Path: method}, RequestURI: method,
		Proto: "HTTP/2.0", ProtoMajor: 2, Body: http.NoBody,
	}
	md, _ := metadata.FromIncomingContext(ctx)
	r.Header = make(http.Header, len(md))
	for name, values := range md {
		switch {
		case name == ":authority":
			r.Host = values[0]
			continue
		case strings.HasPrefix(name, ":"):
			continue
		case strings.HasSuffix(name, "-bin"):
			for i, value := range values { // md is a copy
				values[i] = base64.RawStdEncoding.EncodeToString([]byte(value))
			}
		}
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if p, ok := peer.FromContext(ctx); ok {
		if p.Addr != nil {
			r.RemoteAddr = p.Addr.String()
		}
		if info, ok := p.AuthInfo.(credentials.TLSInfo); ok {
			r.TLS = &info.State
		}
	}
	return r.WithContext(ctx)
}

// metadataOf returns headers as metadata, whose names are in lower case.
func metadataOf(header http.Header) metadata.MD {
	md := make(metadata.MD, len(header))
	for name, values := range header {
		md.Append(name, values...)
	}
	return md
}
