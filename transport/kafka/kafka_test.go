package kafka_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam"
	"github.com/hotparam/hotparam/collector/kafkasink"
	"github.com/hotparam/hotparam/internal/kafkafake"
	"github.com/hotparam/hotparam/internal/testenv"
	"github.com/hotparam/hotparam/internal/wire"
	_ "github.com/hotparam/hotparam/transport/kafka"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const longest = 20 * time.Second

// open opens a file whose counts travel by this broker.
func open(t *testing.T, broker string, log *testenv.LogBuffer) *hotparam.Hotparam {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hotparam.yaml")
	text := fmt.Sprintf(`
namespace: shop
aggregator: {source: kafka, redis: "redis://127.0.0.1:%d/0"}
kafka: {brokers: [%q], timeout: 500ms}
rules:
  - {id: search-terms, match: {route: "GET /search"}, by: [q], hot: 200/s, limit: 50/s}
`, testenv.FreePort(t), broker)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := hotparam.Open(t.Context(), path, hotparam.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func search(h *hotparam.Hotparam) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/search?q=phone", http.NoBody)
	r.Pattern = "GET /search"
	h.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	return w.Code
}

func await(t *testing.T, log *testenv.LogBuffer, what string, condition func() bool) {
	t.Helper()
	testenv.Eventually(t, what, condition, log)
}

func TestCountsTravelByKafka(t *testing.T) {
	broker, err := kafkafake.Start(2, wire.DefaultTopic)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	log := new(testenv.LogBuffer)
	h := open(t, broker.Addr(), log)
	// What is counted before is dropped after a flush.
	await(t, log, "a connection", func() bool { return strings.Contains(log.String(), "kafka is reached") })
	if code := search(h); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	await(t, log, "a record", func() bool {
		s, ok := h.Stats().Sink.(kafkasink.Stats)
		return ok && h.Stats().Collector.Counts == 1 && s.Records > 0
	})
	if err := h.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if strings.Contains(log.String(), "counts do not arrive") {
		t.Errorf("the log:\n%s", log)
	}
}

// Without a broker requests are served, and the log says what is wrong.
func TestKafkaIsAway(t *testing.T) {
	log := new(testenv.LogBuffer)
	h := open(t, fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), log)
	if code := search(h); code != http.StatusOK {
		t.Errorf("status %d", code)
	}
	await(t, log, "a line", func() bool { return strings.Contains(log.String(), "counts do not arrive") })
	begin := time.Now()
	if err := h.Close(context.Background()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("Close took %v", d)
	}
}
