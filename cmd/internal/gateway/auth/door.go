package auth

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/cmd/internal/gateway"
	"github.com/hotparam/hotparam/middleware"
)

const (
	// defaultTimeout is shorter than the 20 ms of Envoy's default configuration.
	defaultTimeout        = 15 * time.Millisecond
	defaultMaxConnections = 1024
	// maxHeaderBytes is twice the limit of Envoy, and four times that of nginx, on a client's
	// headers.
	maxHeaderBytes = 128 << 10
)

// Endpoint is one path that a door serves.
type Endpoint struct {
	// Path begins with "/". It is a prefix with the scheme Envoy. With others it is exact, and the
	// paths /count and /limit below it are for the two steps of a gateway that has a cache. The step
	// is in the path, because gateways forward the headers and queries of clients.
	Path   string
	Scheme Scheme
}

// stepPaths are the paths below an endpoint for one step of the check each.
var stepPaths = map[string]middleware.Steps{"": middleware.AllSteps, "/count": middleware.CountStep, "/limit": middleware.LimitStep}

// query is what a path asks.
type query struct {
	scheme Scheme
	steps  middleware.Steps
}

// DefaultEndpoints returns one endpoint for each scheme: /forwarded, /original, /envoy and
// /nginx.
func DefaultEndpoints() (all []Endpoint) {
	for s := Forwarded; s <= Nginx; s++ {
		all = append(all, Endpoint{Path: "/" + s.String(), Scheme: s})
	}
	return all
}

// Door answers the subrequests of gateways.
type Door struct {
	gateway.HTTPDoor
	exact    map[string]query // by path
	prefixes []Endpoint       // endpoints with scheme Envoy; Path has no trailing "/"
}

// New returns a door with these endpoints, or with the [DefaultEndpoints] if there are none. Their
// paths are distinct. The token of c must be sent in X-Hotparam-Token. New starts nothing.
func New(c gateway.DoorConfig, endpoints []Endpoint) (*Door, error) {
	if err := c.SetDefaults(defaultTimeout, defaultMaxConnections, false); err != nil {
		return nil, err
	}
	if len(endpoints) == 0 {
		endpoints = DefaultEndpoints()
	}
	d := &Door{exact: make(map[string]query)}
	for _, e := range endpoints {
		if err := d.add(e, endpoints); err != nil {
			return nil, fmt.Errorf("gateway/auth: %w", err)
		}
	}
	d.HTTPDoor = gateway.NewHTTPDoor(c, maxHeaderBytes, d, gateway.Incomplete, gateway.Ambiguous, gateway.UnknownPath, gateway.Unsendable)
	return d, nil
}

func (d *Door) add(e Endpoint, all []Endpoint) error {
	if !strings.HasPrefix(e.Path, "/") || strings.ContainsAny(e.Path, "?# %") {
		return fmt.Errorf("endpoint %q: a path begins with / and has no query", e.Path)
	}
	if e.Scheme < Forwarded || e.Scheme > Nginx {
		return fmt.Errorf("endpoint %q: invalid scheme", e.Path)
	}
	stem := strings.TrimRight(e.Path, "/")
	for _, other := range all {
		if other == e {
			continue
		}
		below, isBelow := strings.CutPrefix(other.Path, stem)
		_, isStep := stepPaths[below]
		if other.Path == e.Path || e.Scheme == Envoy && strings.HasPrefix(other.Path+"/", stem+"/") || e.Scheme != Envoy && isBelow && isStep {
			return fmt.Errorf("endpoint %q (%s): %q (%s) has the same path", e.Path, e.Scheme, other.Path, other.Scheme)
		}
	}
	if e.Scheme == Envoy {
		d.prefixes = append(d.prefixes, Endpoint{stem, Envoy})
		return nil
	}
	for below, steps := range stepPaths {
		path := stem + below
		if below == "" {
			path = e.Path
		}
		d.exact[path] = query{e.Scheme, steps}
	}
	return nil
}
