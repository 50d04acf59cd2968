package status

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Profiles may take longer than the server's timeout for other answers, but not forever.
func TestProfilesOutlastTheTimeout(t *testing.T) {
	server := httptest.NewUnstartedServer(Pprof())
	server.Config.WriteTimeout = 500 * time.Millisecond
	server.Start()
	defer server.Close()
	for path, want := range map[string]int{
		"": http.StatusOK, "heap": http.StatusOK, "goroutine?debug=1": http.StatusOK, "trace?seconds=0.7": http.StatusOK,
		"profile?seconds=1000": http.StatusBadRequest, "nothing": http.StatusNotFound,
	} {
		response, err := http.Get(server.URL + PprofPath + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != want || len(body) == 0 {
			t.Errorf("%s: %s, %d bytes, %v", path, response.Status, len(body), err)
		}
	}
}
