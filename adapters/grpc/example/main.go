// Command example serves the health service of gRPC, and limits the frequent checks of a service
// by the rules of hotparam.yaml:
//
//	go run ./example localhost:8080 example/hotparam.yaml
//	grpcurl -plaintext -d '{"service": "search"}' localhost:8080 grpc.health.v1.Health/Check
package main

import (
	"context"
	"errors"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/hotparam/hotparam"
	hpgrpc "github.com/hotparam/hotparam/adapters/grpc"
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
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	hp, err := hotparam.Open(ctx, file)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := newServer(hp)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-ctx.Done()
		force := time.AfterFunc(10*time.Second, server.Stop)
		server.GracefulStop()
		force.Stop()
	}()
	err = server.Serve(listener)
	stop()
	<-drained
	return errors.Join(err, hp.Close(context.Background()))
}

func newServer(hp *hotparam.Hotparam) *grpc.Server {
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(hpgrpc.UnaryServerInterceptor(hp)),
		grpc.ChainStreamInterceptor(hpgrpc.StreamServerInterceptor(hp)),
	)
	checks := health.NewServer()
	checks.SetServingStatus("search", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(server, checks)
	reflection.Register(server)
	return server
}
