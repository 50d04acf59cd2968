package chaos

import (
	"fmt"
	"strings"
	"time"

	"github.com/hotparam/hotparam/checks/chaos/oracle"
)

// Figures that no event changes. The rules and the oracle use them.
const (
	hotThreshold = 30 // requests per second over all instances
	hotRate      = 5  // limit of a hot key, on each instance
	steadyRate   = 20 // requests per second for the steady key, to each instance
	soloRate     = 10 // over all instances, decided by Redis
	soloBurst    = 2
	itemsRate    = 3 // limit of a hot item, on each instance: most refreshes of its answers are refused
)

// limitRule is a limit in the form of the file and of the oracle.
type limitRule struct {
	text  string // the fields of limit:
	quota oracle.Quota
}

func perMinute(family string, n, burst float64) oracle.Quota {
	return oracle.Quota{Family: family, Rate: n / 60, Burst: burst}
}

// A bucket and gcra are one family, since they share their state. All other limits are separate.
var (
	bucketLimits = []limitRule{
		{"rate: 10/1m", perMinute("bucket", 10, 10)},
		{"rate: 12/1m", perMinute("bucket", 12, 12)},
		{"rate: 10/1m, burst: 3", perMinute("bucket", 10, 3)},
		{"rate: 14/1m, algorithm: gcra", perMinute("bucket", 14, 14)},
		{"rate: 11/1m, algorithm: leaky_bucket", perMinute("leaky", 11, 11)},
		{"rate: 30/1m, burst: 20", perMinute("bucket", 30, 20)},
	}
	logLimits = []limitRule{
		{"rate: 10/1m, algorithm: sliding_log", perMinute("log", 10, 10)},
		{"rate: 15/1m, algorithm: sliding_log", perMinute("log", 15, 15)},
		{"rate: 10/1m, algorithm: sliding_blocks, blocks: 10", oracle.Quota{Family: "blocks", Rate: 10 / 54., Burst: 10}}, // any window shorter by one of ten blocks: 54 s
		{"rate: 10/1m", perMinute("bucket", 10, 10)},
		{"rate: 10/30s, algorithm: sliding_log", oracle.Quota{Family: "log", Rate: 10 / 30., Burst: 10}},
		{"rate: 12/1m, algorithm: fixed_window", oracle.Window("fixed", 12, time.Minute)},
	}
	localLimits = []limitRule{
		{"rate: 10/1m", perMinute("bucket", 10, 10)},
		{"rate: 15/1m", perMinute("bucket", 15, 15)},
		{"rate: 10/1m, algorithm: sliding_log", perMinute("log", 10, 10)},
		{"rate: 12/1m, burst: 4", perMinute("bucket", 12, 4)},
		{"rate: 10/1m, algorithm: leaky_bucket", perMinute("leaky", 10, 10)},
		{"rate: 20/1m, burst: 20", perMinute("bucket", 20, 20)},
	}
	// The fleet's limits are large enough to be held in advance by as many instances as may be counted
	// for a while after a restart, and small enough for the load to exceed them.
	fleetLimits = []limitRule{
		{"rate: 100/s, burst: 50", oracle.Quota{Family: "bucket", Rate: 100, Burst: 50}},
		{"rate: 110/s, burst: 60", oracle.Quota{Family: "bucket", Rate: 110, Burst: 60}},
		{"rate: 100/s, burst: 80, algorithm: gcra", oracle.Quota{Family: "bucket", Rate: 100, Burst: 80}},
		{"rate: 100/s, burst: 50, algorithm: leaky_bucket", oracle.Quota{Family: "leaky", Rate: 100, Burst: 50}},
		{"rate: 120/s, burst: 60", oracle.Quota{Family: "bucket", Rate: 120, Burst: 60}},
		{"rate: 100/s, burst: 100", oracle.Quota{Family: "bucket", Rate: 100, Burst: 100}},
	}
	waitLimits = []limitRule{
		{"rate: 10/s, burst: 5", oracle.Quota{Family: "bucket", Rate: 10, Burst: 5}},
		{"rate: 11/s, burst: 5", oracle.Quota{Family: "bucket", Rate: 11, Burst: 5}},
		{"rate: 12/s, burst: 4", oracle.Quota{Family: "bucket", Rate: 12, Burst: 4}},
		{"rate: 10/s, burst: 8", oracle.Quota{Family: "bucket", Rate: 10, Burst: 8}},
		{"rate: 9/s, burst: 5", oracle.Quota{Family: "bucket", Rate: 9, Burst: 5}},
		{"rate: 11/s, burst: 6", oracle.Quota{Family: "bucket", Rate: 11, Burst: 6}},
	}
)

// onHots have on_hot of the route items in each variant, and how long an answer may be used after its
// run. The times differ, as [oracle.Memory] tells by them that a rule has changed.
var onHots = [variants]struct {
	text string
	keep time.Duration
}{
	{`on_hot: {cache: 1s, stale: 3s, vary: ["header:accept-language"]}`, 4 * time.Second},
	{`on_hot: {cache: 300ms, stale: 300ms, vary: ["header:accept-language"]}`, 600 * time.Millisecond},
	{"", oracle.NotKept},
	{`on_hot: {cache: 20s, vary: ["header:accept-language", "cookie:user"]}`, 20 * time.Second},
	{`on_hot: {coalesce: false, cache: 500ms, stale: 2s, vary: ["header:accept-language"]}`, 2500 * time.Millisecond},
	{`on_hot: {vary: ["header:accept-language"]}`, 0},
}

// variants is the number of files that differ in these limits.
const variants = 6

// maxWait is the longest time that a request waits for its turn: wait in [rolling].
const maxWait = 2 * time.Second

// rolling holds the rules whose limits events change, by route.
var rolling = map[string]struct {
	limits []limitRule
	shared bool   // one limit over all instances
	hot    string // the field hot:, if only hot keys are limited
	extra  string // further fields of limit:
}{
	"bucket": {bucketLimits, true, "", ", scope: exact"},
	"log":    {logLimits, true, "", ", scope: exact"},
	"local":  {localLimits, false, "", ""},
	"wait":   {waitLimits, false, "", ", on_limit: wait, wait: 2s"},
	"fleet":  {fleetLimits, true, hotField, ", scope: fleet"},
}

// hotField is the field hot: of the rules whose keys get hot. A key that gets no counts cools soon.
var hotField = fmt.Sprintf("hot: {rate: %d/s, exit: 80%%, hold: 1s, cool_down: 0s}", hotThreshold)

// rulesText returns the rules of one variant.
func rulesText(variant int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `
rules:
  - id: search
    match: {route: "GET /search"}
    by: [q]
    %s
    limit: {rate: %d/s, burst: %d, scope: instance}
  - id: solo
    match: {route: "GET /solo"}
    by: [k]
    limit: {rate: %d/s, burst: %d, scope: exact}
  - id: items
    match: {route: "GET /items"}
    by: [k]
    %s
    limit: {rate: %d/s, burst: %d, scope: instance}
    %s
`, hotField, hotRate, hotRate, soloRate, soloBurst, hotField, itemsRate, itemsRate, onHots[variant].text)
	for _, route := range []string{"bucket", "log", "local", "wait", "fleet"} {
		r := rolling[route]
		fmt.Fprintf(&b, `  - id: %[1]s
    match: {route: "GET /%[1]s"}
    by: [k]
    limit: {%[2]s%[3]s}
    %[4]s
`, route, r.limits[variant].text, r.extra, r.hot)
	}
	return b.String()
}
