// Package hpfiber guards the routes of a Fiber v3 server by hotparam.
//
//	hp, err := hotparam.Open(ctx, "hotparam.yaml")
//	…
//	app := fiber.New()
//	app.Use(hpfiber.Middleware(hp))
//	app.Get("/users/:id", user) // GET /users/{id}
//
// Rules see Fiber's templates and parameters in the syntax of [net/http.ServeMux]:
//
//   - "/files/*" and "/files/+" are /files/{path...}, with the parameter path:path;
//   - "/:id<int>" and "/:id?" are /{id}, where an optional parameter may be empty;
//   - a segment of text and parameters is one parameter: "/flights/:from-:to" is
//     /flights/{from_to}, and "/file.:ext" is /{ext};
//   - without StrictRouting a slash at a template's end is left out: "/users/" is /users.
//
// fiber.go is the middleware, routes.go finds the route of a request and template.go reads its
// template, request.go is a request as rules see it, and response.go its end.
package hpfiber

import (
	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Guard is an *hotparam.Hotparam or a [*middleware.Guard].
type Guard interface {
	Begin(req middleware.Request) (rules.Decision, *middleware.Ticket)
}

// Middleware returns a middleware that lets hp, an *hotparam.Hotparam or a
// *middleware.Guard, decide on each request. It may stand in Use of an application or a
// group, or at a route. Of the routes behind it, the first that matches the request counts,
// whether or not its handler calls Next. A request that is refused is answered, and that is no
// error for the application's error handler. To requests of no route only rules apply that
// match by the path or match all.
//
// Rules by ctx: see values of c.Context and of c.Locals. Handlers call [middleware.AddCost]
// with c.Context(). A permit is held, and the cost is counted, until the handler returns or
// panics, the stream that it has set as the response's body ends, or the function that has
// taken over the connection, as for a WebSocket, returns.
//
// Three things differ from net/http, by the nature of fasthttp: a client that leaves does not
// end a wait, "100 Continue" is sent to a client before its request is refused, and with
// StreamRequestBody a form or JSON of no declared length counts as a body that cannot be read.
func Middleware(hp Guard) fiber.Handler {
	routes := newRoutes()
	return func(c fiber.Ctx) error {
		r := newRequest(c)
		req := middleware.Request{Context: r, Method: c.Method(), Query: r.query, MakeHTTP: r.toHTTP}
		req.Pattern, req.Path = routes.resolve(c, r.path)
		decision, ticket := hp.Begin(req)
		answer := decision.Answer()
		r.end()
		for name, values := range answer.Header {
			c.Response().Header.Del(name)
			for _, value := range values {
				c.Response().Header.Add(name, value)
			}
		}
		switch {
		case answer.Status != 0:
			c.Status(answer.Status).Response().SetBody(answer.Body)
			drain(c)
			return nil
		case ticket == nil:
			return c.Next()
		}
		return serve(c, ticket)
	}
}
