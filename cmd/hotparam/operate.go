package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hotparam/hotparam/cmd/internal/gateway/service"
	"github.com/hotparam/hotparam/cmd/internal/page"
	"github.com/hotparam/hotparam/config"
)

// operateFlags are the flags of `hotparam operate`.
type operateFlags struct {
	redisFlags
	http, tokens        string
	cert, key, clientCA string
	hosts               []string
	logFormat, logLevel string
}

// operateHTTP is the default address of the page that acts.
const operateHTTP = "127.0.0.1:9128"

func newOperate(s streams) *cobra.Command {
	var f operateFlags
	cmd := &cobra.Command{
		Use:   "operate --tokens FILE",
		Short: "Serve the page with pin, block, allow and release, for people who have a token",
		Long: `Serve the aggregator's page with pin, block, allow and release, from a phone as well. It is a
process of its own, and needs a Redis user with the rights of hotparam-operator. The
aggregator's page only reads.

Each action asks for a reason and a confirmation, which says what the action would have
done to the requests of the last minute. hotparam watch, the page and the webhook show who
acted and why. All instances obey within a second.

--tokens names a file with a line for each person: a name, a space, and a token. Or
--client-ca names the authorities that sign the certificates of people; the subject of a
certificate is then the name. An address that is not a loopback address needs TLS: --cert
and --key.`,
		Example: `  hotparam operate --tokens /etc/hotparam/people --config hotparam.yaml      # at http://127.0.0.1:9128
  hotparam operate --tokens people --http :9128 --cert server.pem --key server-key.pem --namespace shop
  hotparam operate --client-ca people.pem --http :9128 --cert server.pem --key server-key.pem --config hotparam.yaml
  echo "ann $(openssl rand -hex 32)" >> people
  HOTPARAM_REDIS=redis://operate:secret@10.0.0.5:6379/0 hotparam operate --tokens people --namespace shop`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return runOperate(cmd.Context(), s, &f) },
	}
	flags := cmd.Flags()
	f.redisFlags.register(flags)
	flags.StringVar(&f.http, "http", operateHTTP, "`address` of the page, health and metrics")
	flags.StringVar(&f.tokens, "tokens", "", "`file` with a line for each person: NAME TOKEN")
	flags.StringVar(&f.cert, "cert", "", "PEM `file` with the certificate of this server")
	flags.StringVar(&f.key, "key", "", "PEM `file` with its key")
	flags.StringVar(&f.clientCA, "client-ca", "", "PEM `file` with the authorities of people's certificates")
	flags.StringSliceVar(&f.hosts, "hosts", nil, "further `names` of this server, besides those of its certificate")
	flags.StringVar(&f.logFormat, "log-format", "text", "text or json")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	return cmd
}

func runOperate(ctx context.Context, s streams, f *operateFlags) error {
	if err := f.validate(); err != nil {
		return usageError(err)
	}
	log, err := newLogger(s.err, f.logFormat, f.logLevel)
	if err != nil {
		return err
	}
	tokens, text, err := f.readTokens()
	if err != nil {
		return configError(err)
	}
	encryption, err := service.NewTLS("operate", &config.Door{Cert: f.cert, Key: f.key, ClientCA: f.clientCA}, log)
	if err != nil {
		return configError(fmt.Errorf("operate: %w", err))
	}
	place, client, err := f.connect(s.err)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // all calls have ended
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.http)
	if err != nil {
		return withAnotherOperateAddress(err)
	}
	defer listener.Close() // the server closes it, if it runs
	if encryption == nil && !page.IsLoopback(listener.Addr()) {
		return usageError(fmt.Errorf("operate: %s is not a loopback address, so it needs TLS: give --cert FILE and --key FILE. "+
			"Or listen on %s, behind a tunnel or a proxy with TLS", f.http, operateHTTP))
	}
	p := &operatorPage{place: place, client: client, log: log, config: f.config, tokens: f.tokens, tokensText: text}
	return p.run(ctx, listener, encryption, page.GuardConfig{
		Tokens: tokens, Certificates: f.clientCA != "", Listener: listener.Addr(), Hosts: f.names(encryption), Log: log,
	})
}

// validate returns an error if the flags do not say who may act.
func (f *operateFlags) validate() error {
	switch {
	case f.tokens == "" && f.clientCA == "":
		return errors.New("operate: who may act? Give --tokens FILE, with a line NAME TOKEN for each person, or --client-ca FILE; " +
			`make a line by echo "ann $(openssl rand -hex 32)"`)
	case (f.cert == "") != (f.key == ""):
		return errors.New("operate: a certificate is two PEM files, --cert and --key: one is missing")
	case f.clientCA != "" && f.cert == "":
		return errors.New("operate: --client-ca needs --cert and --key: without TLS no client shows a certificate")
	}
	return checkAddress("http", f.http)
}

// readTokens returns the tokens and the contents of their file.
func (f *operateFlags) readTokens() (tokens []page.NamedToken, text []byte, err error) {
	if f.tokens == "" {
		return nil, nil, nil
	}
	if text, err = os.ReadFile(f.tokens); err != nil {
		return nil, nil, fmt.Errorf("--tokens: %w", err)
	}
	if tokens, err = page.ParseTokens(text); err != nil {
		return nil, nil, fmt.Errorf("--tokens %s: %w", f.tokens, err)
	}
	return tokens, text, nil
}

// names returns the names under which clients may address the server.
func (f *operateFlags) names(encryption *tls.Config) []string {
	host, _, _ := net.SplitHostPort(f.http) // has been checked
	names := append(slices.Clone(f.hosts), host)
	if encryption == nil {
		return names
	}
	for _, name := range encryption.Certificates[0].Leaf.DNSNames {
		if !strings.HasPrefix(name, "*") { // a pattern may have names of others
			names = append(names, name)
		}
	}
	return names
}
