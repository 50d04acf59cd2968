package real

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// PrometheusServer is a Prometheus that belongs to one test.
type PrometheusServer struct {
	tb      testing.TB
	addr    string
	process *testenv.Process
}

// Alert is an alert that is pending or fires.
type Alert struct {
	Labels      map[string]string
	Annotations map[string]string
	State       string // "pending" or "firing"
	Value       string
}

// Prometheus starts a Prometheus with the configuration, which is YAML, and returns when it
// answers. Paths in the configuration must be absolute. Without a prometheus in PATH the test is
// skipped (see the package).
func Prometheus(tb testing.TB, configuration string) *PrometheusServer {
	tb.Helper()
	path, dir := testenv.Program(tb, "prometheus", "prometheus"), tb.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	testenv.WriteFile(tb, file, configuration)
	p := &PrometheusServer{tb: tb}
	testenv.OnFreePorts(tb, "prometheus", func() error {
		p.addr = testenv.Loopback(testenv.FreePort(tb))
		p.process = testenv.Start(tb, exec.Command(path, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"),
			"--web.listen-address="+p.addr, "--log.level=warn"))
		return p.awaitReady(tb.Context())
	})
	return p
}

func (p *PrometheusServer) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	for {
		err := p.query(ctx, "/-/ready", nil)
		if err == nil && !p.process.HasExited() {
			return nil
		}
		select {
		case <-p.process.Exited():
			if portInUse.MatchString(p.process.Stderr()) {
				return testenv.ErrPortTaken
			}
			return fmt.Errorf("it ended: %s", p.process.Describe())
		case <-ctx.Done():
			return fmt.Errorf("%w; %s", err, p.process.Describe())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Alerts returns the alerts that are pending or fire.
func (p *PrometheusServer) Alerts() []Alert {
	p.tb.Helper()
	var answer struct {
		Data struct{ Alerts []Alert }
	}
	if err := p.query(p.tb.Context(), "/api/v1/alerts", &answer); err != nil {
		p.tb.Fatalf("real: prometheus: %v", err)
	}
	return answer.Data.Alerts
}

// Value returns the value of an expression with one sample, or 0 if it has none.
func (p *PrometheusServer) Value(expression string) float64 {
	p.tb.Helper()
	if values := p.Values(expression); len(values) > 0 {
		return values[0]
	}
	return 0
}

// Values returns the values of an expression's samples, without their labels.
func (p *PrometheusServer) Values(expression string) []float64 {
	p.tb.Helper()
	var answer struct {
		Data struct {
			Result []struct{ Value [2]any } // a time, and a number as text
		}
	}
	if err := p.query(p.tb.Context(), "/api/v1/query?query="+url.QueryEscape(expression), &answer); err != nil {
		p.tb.Fatalf("real: prometheus: %s: %v", expression, err)
	}
	var values []float64
	for _, sample := range answer.Data.Result {
		text, _ := sample.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			p.tb.Fatalf("real: prometheus: %s: %v", expression, err)
		}
		values = append(values, value)
	}
	return values
}

// query sends a query and decodes the answer into the value that to points to, if any.
func (p *PrometheusServer) query(ctx context.Context, path string, to any) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.addr+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	if to == nil {
		return nil
	}
	return json.NewDecoder(response.Body).Decode(to)
}
