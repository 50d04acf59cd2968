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
//   - without StrictRouting, a slash at the end of a template is left out: "/users/" is /users.
//
// fiber.go has the middleware, routes.go finds the route of a request, template.go reads its
// template, request.go presents a request to rules, and response.go ends it. onhot.go has the
// requests that are answered together, and run.go the runs that answer them.
package hpfiber

import (
	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam/middleware"
	"github.com/hotparam/hotparam/rules"
)

// Guard is a *hotparam.Hotparam or a [*middleware.Guard].
type Guard interface {
	Begin(req middleware.Request) (rules.Decision, *middleware.Ticket)
	Share(x *middleware.Exchange, d *rules.Decision) middleware.Shared
	Changed(status int, host, path, query string)
}

// Middleware returns a middleware that lets hp, a *hotparam.Hotparam or a
// *middleware.Guard, decide on each request. It may be used in Use of an application or a
// group, or at a route. The route of a request is the first one after the middleware that
// matches it, whether or not its handler calls Next. A refused request is answered, and is not
// an error for the application's error handler. Requests without a route are only subject to
// rules that match by the path or match all.
//
// The parameters ctx:name of rules are values of c.Context or of c.Locals. Handlers call [middleware.AddCost]
// with c.Context(). A permit is held, and the cost is counted, until the handler returns or
// panics. If the handler has set a stream as the response's body, they last until the stream
// ends. If a function has taken over the connection, as for a WebSocket, they last until it
// returns. If it closes the connection earlier, they end within half a second after that.
//
// With on_hot, a run that answers several requests is served by the application from its beginning,
// and only the response that the handlers behind the middleware leave is shared. Streams are not,
// nor are errors, which the application's error handler answers for each request alone.
//
// Three things differ from net/http because of fasthttp. A client that disconnects does not end
// a wait. "100 Continue" is sent to a client before its request is refused. With
// StreamRequestBody, a form or JSON without a declared length counts as a body that cannot be
// read.
func Middleware(hp Guard) fiber.Handler {
	routes := newRoutes()
	return func(c fiber.Ctx) error {
		if run := runOf(c); run != nil {
			return pass(c, run, routes)
		}
		r := newRequest(c)
		req := middleware.Request{Context: r, Method: c.Method(), Query: r.query, MakeHTTP: r.toHTTP}
		req.Pattern, req.Path = routes.resolve(c, r.path)
		if c.Request().Header.ContentLength() <= 0 {
			req.Steps = middleware.CountStep
		}
		decision, ticket := hp.Begin(req)
		if decision.Reason == rules.ReasonShared {
			var answered bool
			if answered, decision = share(c, hp, r, req, decision); answered {
				r.end()
				return nil
			}
			if decision.Allowed {
				req.Steps = middleware.LimitStep
				decision, ticket = hp.Begin(req)
			}
		}
		answer := decision.Answer()
		r.end()
		setHeader(c, answer.Header)
		if answer.Status != 0 {
			c.Status(answer.Status).Response().SetBody(answer.Body)
			drain(c)
			return nil
		}
		err := next(c, ticket)
		if err == nil && !middleware.IsSafe(req.Method) {
			hp.Changed(c.Response().StatusCode(), string(c.Request().Host()), req.Path, req.Query)
		}
		return err
	}
}

// next calls the handlers after the middleware.
func next(c fiber.Ctx, ticket *middleware.Ticket) error {
	if ticket == nil {
		return c.Next()
	}
	return serve(c, ticket)
}

// setHeader sets the headers of an answer.
func setHeader(c fiber.Ctx, header map[string][]string) {
	for name, values := range header {
		c.Response().Header.Del(name)
		for _, value := range values {
			c.Response().Header.Add(name, value)
		}
	}
}
