// Command ownbackend shows a custom place for limiters: a server that keeps them for other
// processes, over net/rpc. A backend needs only one method. backend_test.go runs the test suite
// that hotparam's own backends pass.
//
//	go run ./examples/ownbackend --serve 127.0.0.1:7000 &
//	go run ./examples/ownbackend --ask 127.0.0.1:7000 ada ada ada ada bob
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/rpc"
	"time"

	"github.com/hotparam/hotparam/limiter"
	"github.com/hotparam/hotparam/rules"
)

func main() {
	serveAt := flag.String("serve", "", "`address` to serve limiters on")
	askAt := flag.String("ask", "", "`address` of a server to ask for each of the arguments")
	flag.Parse()
	var err error
	switch {
	case *serveAt != "":
		err = serve(*serveAt)
	case *askAt != "":
		err = ask(*askAt, flag.Args())
	default:
		log.Fatal("give --serve or --ask")
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(addr string) error {
	memory, err := limiter.NewMemory(limiter.MemoryConfig{})
	if err != nil {
		return err
	}
	server := rpc.NewServer()
	if err := server.Register(NewServer(memory)); err != nil {
		return err
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	server.Accept(listener)
	return nil
}

func ask(addr string, keys []string) error {
	client, err := rpc.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // every answer has arrived
	lim, err := limiter.New(NewBackend(client), "users", rules.Quota{Rate: rules.Rate{N: 3, Per: time.Minute}})
	if err != nil {
		return err
	}
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		d, err := lim.Allow(ctx, key)
		cancel()
		if err != nil {
			return err
		}
		fmt.Printf("%s: allowed %v, %d remain, retry after %v\n", key, d.Allowed, d.Remaining, d.RetryAfter.Round(time.Second))
	}
	return nil
}
