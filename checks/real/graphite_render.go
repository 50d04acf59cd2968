package real

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hotparam/hotparam/internal/testenv"
)

// GraphiteSeries is one series in an answer of graphite-web.
type GraphiteSeries struct {
	Target string
	Points []GraphitePoint
}

// GraphitePoint is one second's count. Graphite names a second by its end: the point of 12:00:01
// holds the counts from 12:00:00 on.
type GraphitePoint struct {
	Time  int64 // seconds since 1970
	Value float64
}

// Render asks graphite-web for the series that a target names ("stats_counts.shop.*", or a
// function of it), with their points of the last time. It leaves out series without points.
func (g *GraphiteServer) Render(target string, last time.Duration) []GraphiteSeries {
	g.tb.Helper()
	series, err := g.render(g.tb.Context(), target, last)
	if err != nil {
		g.tb.Fatalf("real: ask graphite-web for %s: %v", target, err)
	}
	return series
}

func (g *GraphiteServer) render(ctx context.Context, target string, last time.Duration) ([]GraphiteSeries, error) {
	ctx, cancel := context.WithTimeout(ctx, testenv.Patience)
	defer cancel()
	form := url.Values{
		"target":       {target},
		"from":         {fmt.Sprintf("-%ds", int64(last/time.Second))},
		"format":       {"json"},
		"noCache":      {"1"},
		"noNullPoints": {"1"},
	}
	for {
		series, err := g.postForm(ctx, form.Encode())
		if !errors.Is(err, errServer) {
			return series, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// errServer reports a failure of graphite-web. It fails if it reads a file whose head carbon has
// not written yet.
var errServer = errors.New("graphite-web answers 500")

func (g *GraphiteServer) postForm(ctx context.Context, form string) ([]GraphiteSeries, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.URL()+"/render", strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusInternalServerError:
		return nil, errServer
	default:
		return nil, fmt.Errorf("status %s", response.Status)
	}
	var answer []struct {
		Target     string
		Datapoints [][2]float64
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, err
	}
	series := make([]GraphiteSeries, len(answer))
	for i, a := range answer {
		series[i].Target = a.Target
		for _, p := range a.Datapoints {
			series[i].Points = append(series[i].Points, GraphitePoint{Time: int64(p[1]), Value: p[0]})
		}
	}
	return series, nil
}
