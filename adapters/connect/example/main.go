// Command example serves shop.Search/Find, whose message is a text, and limits frequent texts by
// the rules of hotparam.yaml:
//
//	go run ./example localhost:8080 example/hotparam.yaml
//	curl -H 'Content-Type: application/json' -d '"phone"' localhost:8080/shop.Search/Find
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/hotparam/hotparam"
	hpconnect "github.com/hotparam/hotparam/adapters/connect"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatalf("usage: %s ADDRESS HOTPARAM.YAML", os.Args[0])
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func run(addr, file string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	hp, err := hotparam.Open(ctx, file)
	if err != nil {
		return err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true) // for gRPC
	server := &http.Server{Addr: addr, Handler: routes(hp), Protocols: protocols, ReadHeaderTimeout: 5 * time.Second}
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		drained <- server.Shutdown(limit)
	}()
	if err = server.ListenAndServe(); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	stop()
	return errors.Join(err, <-drained, hp.Close(context.Background()))
}

func routes(hp *hotparam.Hotparam) http.Handler {
	guarded := connect.WithInterceptors(hpconnect.NewInterceptor(hp))
	mux := http.NewServeMux()
	mux.Handle("/shop.Search/Find", connect.NewUnaryHandler("/shop.Search/Find", find, guarded))
	return mux
}

func find(_ context.Context, req *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
	return connect.NewResponse(wrapperspb.String("found " + req.Msg.GetValue())), nil
}
