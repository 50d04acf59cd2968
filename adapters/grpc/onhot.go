package hpgrpc

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hotparam/hotparam/middleware/rpc"
)

// runHandler implements [rpc.Run] for a [grpc.UnaryHandler].
func runHandler(ctx context.Context, handler any, method string, r *http.Request, message proto.Message) (any, rpc.Code) {
	stream := &runStream{method: "/" + method}
	ctx = metadata.NewIncomingContext(grpc.NewContextWithServerTransportStream(ctx, stream), incoming(r))
	res, err := handler.(grpc.UnaryHandler)(ctx, message)
	switch {
	case err != nil:
		return nil, rpc.Code(status.Code(err))
	case stream.written.Load():
		return nil, 0
	}
	return res, 0
}

// incoming returns the metadata of a run's request, as request has made it of a call.
func incoming(r *http.Request) metadata.MD {
	md := metadata.MD{":authority": {r.Host}}
	for name, values := range r.Header {
		for _, value := range values {
			if strings.HasSuffix(name, "-Bin") {
				plain, err := base64.RawStdEncoding.DecodeString(value)
				if err != nil {
					continue
				}
				value = string(plain)
			}
			md.Append(name, value)
		}
	}
	return md
}

// runStream is the transport of a run, which has none. It keeps whether the handler has sent
// metadata.
type runStream struct {
	method  string
	written atomic.Bool
}

func (s *runStream) Method() string                  { return s.method }
func (s *runStream) SetHeader(md metadata.MD) error  { return s.write(md) }
func (s *runStream) SendHeader(md metadata.MD) error { return s.write(md) }
func (s *runStream) SetTrailer(md metadata.MD) error { return s.write(md) }

func (s *runStream) write(md metadata.MD) error {
	if len(md) > 0 {
		s.written.Store(true)
	}
	return nil
}
