package replay

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/config"
)

// pooledLog returns a log of a minute of requests, 200 a second to 50 values, that take some
// milliseconds. In the last seconds all take as long as they wait for one value that takes half a
// second, or without it, all are as slow.
func pooledLog(guilty bool) []byte {
	var b bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 60 * 200 {
		at := time.Unix(1_700_000_000, 0).Add(time.Duration(i) * 5 * time.Millisecond).UTC()
		status, took := fmt.Sprint(random.IntN(50)), 3+4*random.ExpFloat64()
		if i > 50*200 {
			took += 80 * random.Float64()
			if guilty && i%50 == 0 {
				status, took = "all", 500+100*random.Float64()
			}
		}
		fmt.Fprintf(&b, `{"time":%q,"method":"GET","uri":"/orders?status=%s","duration":%.6f}`+"\n", at.Format(time.RFC3339Nano), status, took/1000)
	}
	return b.Bytes()
}

// A log with durations shows which value cost the others their time, and no value if none did.
func TestCostAuto(t *testing.T) {
	file, err := config.Parse("hotparam.yaml", []byte(`
namespace: shop
rules:
  - id: orders
    match: {route: "GET /orders"}
    by: [status]
    hot: {cost: auto}
    limit: {concurrency: auto}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, guilty := range []bool{true, false} {
		got := collect{t: t}
		if _, err := Run(t.Context(), Config{Rules: file.Rules, Log: stdin(t, bytes.NewReader(pooledLog(guilty))), OnEvent: got.add}); err != nil {
			t.Fatal(err)
		}
		if !guilty && len(got.events) > 0 || guilty && (len(got.events) != 1 || !strings.HasSuffix(got.events[0].Key, "?status=all")) {
			t.Errorf("guilty %v: %+v", guilty, got.events)
		}
	}
}
