package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/explain"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/hotkeys"
	"github.com/hotparam/hotparam/internal/base"
)

// explaining holds the flags of `hotparam rules explain`.
type explaining struct {
	config, redis   string
	from, tokenFile string
	headers         []string
	body            string
	route, client   string
	resource        string
	noRedis, json   bool
	// eitherByVariable is set if --config or --from has the value of its variable. Both may then
	// be set: --from wins, unless --config is a flag and so precedes the variable of --from.
	eitherByVariable bool
}

func newExplain(s streams) *cobra.Command {
	var e explaining
	cmd := &cobra.Command{
		Use:   "explain {--config FILE | --from URL} {METHOD URL | --resource NAME [PARAM=VALUE…]}",
		Short: "Explain a request: the rules that match, its keys, and the decision",
		Long: `Explain a request: the rules that match it, its keys, which of them are hot, and the
decision with its reason. It takes no token and counts nothing. The exit code is 0 for
any decision.

Hot keys are read from Redis. With --from, a running aggregator or guard explains the
request by its rules in force.

With --resource the request is not HTTP: it is a resource that the program passes to Enter,
or an RPC, such as shop.Search/Find. Parameters are written as q=phone, fields of an RPC's
message as rpc:user.id=7, and metadata of an RPC with -H.`,
		Example: `  hotparam rules explain --config hotparam.yaml GET '/search?q=phone'
  hotparam rules explain --config hotparam.yaml GET /cart -H 'X-Tenant:acme' --client 203.0.113.7
  hotparam rules explain --config hotparam.yaml POST /login -d 'user=ann&password=x'
  hotparam rules explain --config hotparam.yaml POST /orders -d '{"sku":"p1"}'
  hotparam rules explain --config hotparam.yaml --resource shop.Search/Find rpc:query=phone
  hotparam rules explain --from http://127.0.0.1:9125 GET '/search?q=phone'
  hotparam rules explain --config hotparam.yaml GET '/search?q=phone' --json | jq -r .decision`,
		Args: func(cmd *cobra.Command, words []string) error {
			if e.resource != "" {
				return nil
			}
			return args("METHOD", "URL")(cmd, words)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.eitherByVariable = byVariable(cmd, "config") || byVariable(cmd, "from")
			if e.eitherByVariable && byVariable(cmd, "from") && !byVariable(cmd, "config") && e.config != "" {
				e.from = "" // a flag precedes a variable
			}
			return e.run(cmd.Context(), s, args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&e.config, "config", "", "rules `file`")
	f.StringVar(&e.from, "from", "", "`URL` of a daemon's HTTP server (aggregator.http) to ask instead")
	f.StringVar(&e.tokenFile, "token-file", "", "`file` with the token of the daemon's page")
	f.StringVar(&e.redis, "redis", "", "Redis `URL` or host:port (default that of the file)")
	f.BoolVar(&e.noRedis, "no-redis", false, "do not ask Redis which keys are hot")
	f.StringArrayVarP(&e.headers, "header", "H", nil, "a `header` as 'Name: value'; may be given several times")
	f.StringVarP(&e.body, "data", "d", "", "the `body`; @FILE reads a file, @- standard input. Without a Content-Type it is JSON if it begins with { or [, else a form")
	f.StringVar(&e.route, "route", "", "the `pattern` that the program's router has for the request, such as 'GET /u/{id}'")
	f.StringVar(&e.resource, "resource", "", "the `name` of a resource that is not HTTP; its parameters are the arguments")
	f.StringVar(&e.client, "client", "", "IP `address` of the connection's peer, for rules by addr:")
	f.BoolVar(&e.json, "json", false, "one JSON object: {matches, keys: [{key, rule, hot, control, …}], decision, rule, why, answer, namespace, version}")
	return cmd
}

func (e *explaining) run(ctx context.Context, s streams, args []string) error {
	q, err := e.request(s, args)
	if err != nil {
		return usageError(err)
	}
	var d explain.Document
	switch {
	case e.config != "" && e.from != "" && !e.eitherByVariable:
		return usageError(errors.New("--config and --from: choose one: a file, or a running daemon"))
	case e.from != "":
		d, err = e.askDaemon(ctx, q)
	case e.config != "":
		d, err = e.explain(ctx, s, q)
	default:
		return usageError(errors.New("--config is missing: it names the file with the rules; --from asks a running daemon instead"))
	}
	if err != nil {
		return err
	}
	if e.json {
		return writeJSON(s.out, d)
	}
	return d.WriteText(s.out, q)
}

// request returns the request that flags and arguments describe.
func (e *explaining) request(s streams, args []string) (explain.RequestJSON, error) {
	q := explain.RequestJSON{Route: e.route, Client: e.client, Resource: e.resource, Headers: make(http.Header)}
	if e.resource == "" {
		q.Method, q.URL = strings.ToUpper(args[0]), args[1]
	} else {
		q.Params = make(url.Values)
		for _, arg := range args {
			name, value, found := strings.Cut(arg, "=")
			if !found || name == "" {
				return q, fmt.Errorf("%q: want PARAM=VALUE, such as q=phone or rpc:user.id=7", arg)
			}
			q.Params.Add(name, value)
		}
	}
	for _, line := range e.headers {
		name, value, found := strings.Cut(line, ":")
		if !found || strings.TrimSpace(name) == "" {
			return q, fmt.Errorf("-H %q: want 'Name: value'", line)
		}
		q.Headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	var err error
	if q.Body, err = e.readBody(s.in); err != nil {
		return q, fmt.Errorf("-d: %w", err)
	}
	if q.Body != "" && q.Headers.Get("Content-Type") == "" {
		kind := "application/x-www-form-urlencoded"
		if text := strings.TrimSpace(q.Body); strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") {
			kind = "application/json"
		}
		q.Headers.Set("Content-Type", kind)
	}
	return q, nil
}

func (e *explaining) readBody(in io.Reader) (string, error) {
	name, isFile := strings.CutPrefix(e.body, "@")
	switch {
	case !isFile:
		return e.body, nil
	case name != "-":
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close() // the file was only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, explain.MaxBody+1))
	return string(text), err
}

// askDaemon sends the request to a daemon, which explains it.
func (e *explaining) askDaemon(ctx context.Context, q explain.RequestJSON) (explain.Document, error) {
	token, err := base.ReadSecret(e.tokenFile, "")
	if err != nil {
		return explain.Document{}, usageError(fmt.Errorf("--token-file: %w", err))
	}
	token = cmp.Or(token, os.Getenv("HOTPARAM_TOKEN")) // not a flag: others can see the arguments of a process
	d, err := explain.Ask(ctx, explain.Daemon{URL: e.from, Token: token}, q)
	switch {
	case errors.Is(err, explain.ErrURL):
		return d, usageError(fmt.Errorf("--from: %w", err))
	case err != nil:
		return d, unreachableError(fmt.Errorf("%s: %w", redacted(e.from), err))
	}
	return d, nil
}

// explain explains the request by the file.
func (e *explaining) explain(ctx context.Context, s streams, q explain.RequestJSON) (explain.Document, error) {
	file, err := loadConfig(s.err, e.config)
	if err != nil {
		return explain.Document{}, err
	}
	// The key of redacted values is often present on servers only. Without it the rest is
	// explained.
	_ = file.ReadRedactKey()
	facts, err := e.facts(ctx, file)
	if err != nil {
		return explain.Document{}, err
	}
	d, err := explain.Explain(q, explain.RulesOf(file, file.Rules), facts)
	if err != nil {
		return d, usageError(err)
	}
	return d, nil
}

// facts reads the hot keys and controls from Redis, unless --no-redis is set.
func (e *explaining) facts(ctx context.Context, file *config.File) (explain.Facts, error) {
	if e.noRedis {
		return explain.Facts{Unknown: "Redis was not asked (--no-redis)"}, nil
	}
	if file.Aggregator.Source == config.SourceNone {
		return explain.Facts{}, nil // no key becomes hot
	}
	settings := file.Aggregator.WithDefaults().Redis
	override(&settings.URL, e.redis)
	client, err := hotkeys.NewClientFrom(hotkeys.ClientConfig(settings))
	if err != nil {
		return explain.Facts{}, usageError(err)
	}
	defer func() { _ = client.Close() }() // the client has only read
	facts := explain.Read(ctx, client, file.Rules.Namespace)
	if facts.Unknown != "" {
		facts.Unknown += " (" + redacted(settings.URL) + ")"
	}
	return facts, nil
}
