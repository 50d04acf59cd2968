// Command example serves POST /shops/{shop}/login and limits the logins of each user of a shop
// by the rules of hotparam.yaml:
//
//	go run ./example localhost:8080 example/hotparam.yaml
//	curl -i -d user=ann localhost:8080/shops/toys/login
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/hotparam/hotparam"
	hpgin "github.com/hotparam/hotparam/adapters/gin"
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
	server := &http.Server{Addr: addr, Handler: routes(hp), ReadHeaderTimeout: 5 * time.Second}
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
	r := gin.Default()
	r.Use(hpgin.Middleware(hp, hpgin.WithEngine(r)))
	r.POST("/shops/:shop/login", func(c *gin.Context) {
		c.String(http.StatusOK, fmt.Sprintf("hello %q of %q\n", c.PostForm("user"), c.Param("shop")))
	})
	return r
}
