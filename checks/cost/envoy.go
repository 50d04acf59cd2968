package cost

import (
	"strings"
	"testing"

	"github.com/hotparam/hotparam/checks/real"
)

// startEnvoy starts an Envoy with adaptive concurrency before the instances and returns its
// address. The numbers of its gradient controller are those of Envoy's documentation.
func startEnvoy(tb testing.TB, addrs []string) (addr string) {
	tb.Helper()
	var endpoints []string
	for _, addr := range addrs {
		endpoints = append(endpoints, "{endpoint: {address: {socket_address: {"+real.EnvoyAddress(addr)+"}}}}")
	}
	return real.EnvoyWith(tb, strings.ReplaceAll(envoyConfiguration, "ENDPOINTS", strings.Join(endpoints, ", "))).Addr
}

const envoyConfiguration = `
static_resources:
  listeners:
    - address: {socket_address: {address: 0.0.0.0, port_value: 8000}}
      filter_chains:
        - filters:
            - name: envoy.filters.network.http_connection_manager
              typed_config:
                "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
                stat_prefix: ingress
                http_filters:
                  - name: envoy.filters.http.adaptive_concurrency
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency
                      gradient_controller_config:
                        sample_aggregate_percentile: {value: 90}
                        concurrency_limit_params: {concurrency_update_interval: 0.1s}
                        min_rtt_calc_params: {jitter: {value: 10}, interval: 60s, request_count: 50}
                      enabled: {default_value: true, runtime_key: adaptive_concurrency.enabled}
                      concurrency_limit_exceeded_status: {code: TooManyRequests}
                  - name: envoy.filters.http.router
                    typed_config:
                      "@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router
                route_config:
                  virtual_hosts:
                    - {name: all, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: app}}]}
  clusters:
    - name: app
      type: STATIC
      circuit_breakers: {thresholds: [{max_connections: 100000, max_pending_requests: 100000, max_requests: 100000}]}
      load_assignment: {cluster_name: app, endpoints: [{lb_endpoints: [ENDPOINTS]}]}
`
