package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/hotparam/hotparam/cmd/internal/graphitesource"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/base"
	"github.com/hotparam/hotparam/internal/figure"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

var graphiteWay = source{
	open:   newGraphitePipeline,
	server: "Graphite",
	read:   func(f *config.File) string { return graphiteWords(f.Graphite.WithDefaults()) },
	sent: func(f *config.File) string {
		return sentByStatsD(f) + "; " + graphiteWords(f.Graphite.WithDefaults())
	},
}

// graphiteWords describes the requests to Graphite: their series, interval and credentials.
func graphiteWords(g config.Graphite) string {
	series := cmp.Or(g.Series, graphitesource.DefaultSeries)
	if g.Rate {
		series += " (per second)"
	}
	words := fmt.Sprintf("Graphite at %s, asked %s for %s in steps of %v", g.URL, cmp.Or(g.Every, graphitesource.DefaultEvery), series, g.Step)
	switch {
	case g.User != "":
		words += ", as user " + g.User
	case g.TokenFile+g.TokenEnv != "":
		words += ", with a token"
	default:
		return words
	}
	if strings.HasPrefix(g.URL, "http:") {
		words += " in the clear"
	}
	return words
}

// graphitePipeline is the pipeline that polls Graphite. It has one publisher.
type graphitePipeline struct {
	owner
	source *graphitesource.Source
	url    string
}

// newGraphitePipeline returns a pipeline after checking that Graphite answers and grants access.
// If it does not, newGraphitePipeline returns an error within seconds.
func newGraphitePipeline(ctx context.Context, set *settings) (pipeline, error) {
	p, err := makeGraphitePipeline(set)
	if err != nil {
		return nil, configError(err)
	}
	if err := p.source.Check(ctx); err != nil {
		if errors.Is(err, graphitesource.ErrUnreachable) {
			return nil, unreachableError(err)
		}
		return nil, configError(err)
	}
	return p, nil
}

// makeGraphitePipeline returns a pipeline without making any network call.
func makeGraphitePipeline(set *settings) (*graphitePipeline, error) {
	p := &graphitePipeline{url: set.File.Graphite.URL}
	o, err := newOwner(set, func(hot []published.Hot) { p.source.Inherit(hot) })
	if err != nil {
		return nil, err
	}
	p.owner = o
	g := set.File.Graphite
	c := graphitesource.Config{
		Rules: set.File.Rules, Publisher: o.publisher, Encoding: set.Encoding, Canonical: set.File.Aggregator.Canonical, Memory: set.File.Aggregator.Memory,
		Days: set.days, OnTops: set.history.onTops(o.name), URL: g.URL, Every: g.Every, Offset: g.Offset, Timeout: g.Timeout,
		Series: g.Series, Rate: g.Rate, Heartbeat: g.Heartbeat, Step: g.Step,
		User: g.User, Log: set.Log,
	}
	if c.Password, err = readSecret("password", g.PasswordFile, g.PasswordEnv); err != nil {
		return nil, err
	}
	if c.Token, err = readSecret("token", g.TokenFile, g.TokenEnv); err != nil {
		return nil, err
	}
	if g.TLS != nil {
		if c.TLS, err = g.TLS.Config(); err != nil {
			return nil, fmt.Errorf("graphite.%w", err)
		}
	}
	p.source, err = graphitesource.New(c)
	return p, err
}

// readSecret returns the secret in a file or an environment variable, or "" if neither is named.
func readSecret(what, file, env string) (string, error) {
	text, err := base.ReadSecret(file, env)
	if err == nil {
		return text, nil
	}
	field := what + "_env"
	if file != "" {
		field = what + "_file"
	}
	return "", fmt.Errorf("graphite.%s: %w", field, err)
}

// Run implements pipeline.
func (p *graphitePipeline) Run(ctx context.Context) error {
	return p.run(ctx, func(ctx context.Context) error {
		err := p.source.Run(ctx)
		p.log.Info("aggregator has drained", "counts", p.source.Stats().Counted)
		return err
	})
}

func (p *graphitePipeline) reload(rules *rules.Rules) error {
	if err := p.source.Reload(rules); err != nil {
		return err
	}
	p.owner.reload(rules)
	return nil
}

func (p *graphitePipeline) ready() (string, error) {
	words, err := p.owner.ready()
	if stats := p.source.Stats(); err == nil && stats.Frozen {
		return "", errors.New("time stands still: " + stats.Why)
	}
	return words, err
}

func (p *graphitePipeline) collect(s figure.Samples) {
	stats := p.source.Stats()
	figure.Collect(s, graphiteMetrics, stats)
	figure.Collect(s, detectorMetrics, stats.Detector)
	figure.Collect(s, publisherMetrics, p.publisher.Stats())
}

func (p *graphitePipeline) where() slog.Attr { return slog.String(config.SourceGraphite, p.url) }

// reportTo implements pipeline.
func (p *graphitePipeline) reportTo(m *published.Member) {
	stats := p.source.Stats()
	m.Dropped, m.Waiting = stats.BadValue, int64(p.publisher.Stats().Waiting)
	reportDetector(m, &stats.Detector)
}
