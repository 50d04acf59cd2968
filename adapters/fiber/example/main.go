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
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam"
	hpfiber "github.com/hotparam/hotparam/adapters/fiber"
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
	app := fiber.New(fiber.Config{ReadTimeout: 30 * time.Second})
	routes(app, hp)
	drained := make(chan error, 1)
	go func() {
		<-ctx.Done()
		limit, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		drained <- app.ShutdownWithContext(limit)
	}()
	err = app.Listen(addr, fiber.ListenConfig{DisableStartupMessage: true})
	stop()
	return errors.Join(err, <-drained, hp.Close(context.Background()))
}

func routes(app *fiber.App, hp *hotparam.Hotparam) {
	app.Use(hpfiber.Middleware(hp))
	app.Post("/shops/:shop/login", func(c fiber.Ctx) error {
		return c.SendString(fmt.Sprintf("hello %q of %q\n", c.FormValue("user"), c.Params("shop")))
	})
}
