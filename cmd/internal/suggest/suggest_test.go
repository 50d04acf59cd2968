package suggest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/hotparam/hotparam/checks/exact"
	"github.com/hotparam/hotparam/cmd/internal/demo/data"
	"github.com/hotparam/hotparam/config"
	"github.com/hotparam/hotparam/internal/accesslog"
	"github.com/hotparam/hotparam/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func keep(t *testing.T, names []string, stdin []byte) *accesslog.Kept {
	t.Helper()
	log, err := accesslog.Open(names, accesslog.Options{Stdin: bytes.NewReader(stdin)})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := log.Keep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return kept
}

func find(t *testing.T, kept *accesslog.Kept, perDay float64) *Proposal {
	t.Helper()
	r, err := Find(t.Context(), Config{Log: kept, PerDay: perDay})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The numbers reported for the proposed rules are those of an exact count of the same requests.
// They are about the requested number of hot keys, if the log has so many.
func TestProposalsAgreeWithAnExactCount(t *testing.T) {
	checkProposals(t, []proposal{
		{"edgar-2017-06-30.access.log.zst", []float64{10, 100}, 0},
		{"semicomplete-apache_logs.log.zst", []float64{1, 1000}, 1},
		{"scan-acunetix.log.zst", []float64{10}, 1},
	})
}

// proposal is a trace, the numbers of hot keys a day to ask for, and the number of proposed
// rules, if that is always the same.
type proposal struct {
	trace  string
	perDay []float64
	rules  int
}

func checkProposals(t *testing.T, cases []proposal) {
	dir := filepath.Join("..", "..", "..", "..", "shared", "data")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder shared/data beside the repository, with the real logs, is not there")
	}
	for _, c := range cases {
		t.Run(c.trace, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(dir, c.trace)
			requests := traceOf(t, path)
			kept := keep(t, []string{path}, nil)
			for _, perDay := range c.perDay {
				r := find(t, kept, perDay)
				file, err := config.Parse("", []byte(r.Rules))
				if err != nil {
					t.Fatalf("%v\n%s", err, r.Rules)
				}
				if n := len(file.Rules.Rules); c.rules > 0 && n != c.rules || n == 0 {
					t.Errorf("%d rules, want %d:\n%s", n, c.rules, r.Rules)
				}
				hot := 0
				for i := range file.Rules.Rules {
					rule := &file.Rules.Rules[i]
					n := exactHot(requests, rule)
					hot += n
					if at := slices.IndexFunc(r.Params, func(p *Param) bool { return p.rule == rule.ID }); at < 0 || r.Params[at].Hot != n {
						t.Errorf("%s: %d keys, by an exact count %d", rule.ID, r.Params[at].Hot, n)
					}
				}
				if hot != r.Hot {
					t.Errorf("%v a day: %d keys were said to become hot, an exact count says %d", perDay, r.Hot, hot)
				}
				want := perDay * r.Days
				if off := float64(r.Hot) - want; (off > 0.4*want+2 || off < -0.4*want-2) && r.Hot != r.Most {
					t.Errorf("%v a day over %.1f days: %d keys became hot, of %d at most", perDay, r.Days, r.Hot, r.Most)
				}
				t.Logf("%v a day, %.1f days: %d hot, %d at most, %d replays", perDay, r.Days, r.Hot, r.Most, r.Replays)
			}
		})
	}
}

// exactHot returns how many keys of a rule become hot, each counted once a day.
func exactHot(requests []exact.TraceRequest, rule *rules.Rule) int {
	type keyDay struct {
		key string
		day int64
	}
	days := make(map[keyDay]bool)
	for key, events := range simulate(requests, rule).events {
		for _, e := range events {
			if e.Hot {
				days[keyDay{key, (e.At - requests[0].At) / int64(24*time.Hour)}] = true
			}
		}
	}
	return len(days)
}

// match matches a path with a route, independently of the code under test.
func match(pattern, method, path string) (wild map[string]string, ok bool) {
	m, pattern, _ := strings.Cut(pattern, " ")
	if m != method && !(m == "GET" && method == "HEAD") {
		return nil, false
	}
	want, got := strings.Split(strings.Replace(pattern, "{$}", "", 1), "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	wild = make(map[string]string)
	for i := range want {
		if strings.HasPrefix(want[i], "{") {
			if wild[strings.Trim(want[i], "{}")] = got[i]; got[i] == "" {
				return nil, false
			}
		} else if want[i] != got[i] {
			return nil, false
		}
	}
	return wild, true
}

// The log in the repository.
func TestDemoLog(t *testing.T) {
	r := find(t, keep(t, []string{"-"}, data.EDGAR), 12)
	if r.Hot < 9 || r.Hot > 15 || r.Days != 1 || len(r.PerDay) != 1 || r.PerDay[0] != r.Hot || r.Requests != 9925 {
		t.Errorf("%+v", r)
	}
}

// made writes a log of a day, one request each second.
func made(target func(i int) string) []byte {
	var b bytes.Buffer
	for i := range 24 * 3600 / 10 {
		fmt.Fprintf(&b, `{"time":%d,"method":"GET","uri":%s}`+"\n", 1500000000+10*i, strconv.Quote(target(i)))
	}
	return b.Bytes()
}

// burst returns a different value for each request, except for half an hour or so.
func burst(i int) int {
	if i >= 3000 && i < 3200 {
		return 7
	}
	return i
}

func TestNothingIsProposed(t *testing.T) {
	for _, c := range []struct {
		name   string
		target func(i int) string
		why    string
	}{
		{"no parameters", func(int) string { return "/a" }, ""},
		{"all alike", func(i int) string { return "/a?q=" + strconv.Itoa(i%1000) }, "no value comes often at a time"},
		{"each its own", func(i int) string { return "/a?id=" + strconv.Itoa(i) }, "nearly every request has a value of its own"},
		{"an option", func(i int) string { return "/a?sort=" + strconv.Itoa(i*i%3) }, "few values: an option, hot at all times or never"},
		{"the same", func(int) string { return "/a?v=1" }, "always the same value"},
		{"even", func(i int) string { return "/a?q=" + strconv.Itoa(i/10%12) }, "no value is frequent enough"},
		{"few requests", func(i int) string { return []string{"/a", "/a?q=1"}[min(1, i%100/99)] }, "too few requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := find(t, keep(t, []string{"-"}, made(c.target)), 10)
			if r.Rules != "" || r.Hot != 0 || r.Replays != 0 {
				t.Errorf("proposed:\n%s", r.Rules)
			}
			why := ""
			if len(r.Params) > 0 {
				why = r.Params[0].Why
			}
			if strings.TrimSuffix(why, ", usual values aside") != c.why {
				t.Errorf("%q, want %q", why, c.why)
			}
		})
	}
}

// Values that look secret are neither proposed nor printed, and are not in the rules.
func TestSecretsAreLeftOut(t *testing.T) {
	log := made(func(i int) string {
		hot := burst(i)
		return fmt.Sprintf("/a?access_token=s3cret%d&q=eyJhbGciOiJIUzI1NiJ9%d&user=ann%d@shop.example&password=x%d", hot, hot, hot, hot)
	})
	r := find(t, keep(t, []string{"-"}, log), 1)
	if r.Secret != 2 || len(r.Params) != 2 || r.Rules == "" {
		t.Fatalf("%d secret, %d parameters\n%s", r.Secret, len(r.Params), r.Rules)
	}
	all := r.Rules
	for _, p := range r.Params {
		all += fmt.Sprintf("%+v", *p)
	}
	for _, secret := range []string{"token", "s3cret", "password", "eyJ", "shop.example"} {
		if strings.Contains(all, secret) {
			t.Errorf("%q is told:\n%s", secret, all)
		}
	}
}

// Names that have another meaning in a rule, or none, do no harm.
func TestOddNames(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: left out with -short")
	}
	names := []string{"all", "*", "a:b", "path:x", "a b", "\xff", "ü", "[]", "q\"", "each", "header:x", "~", "null", "- x", "#", "{}", "\n"}
	log := made(func(i int) string {
		query := url.Values{}
		for _, name := range names {
			query.Set(name, strconv.Itoa(burst(i)))
		}
		return "/a?" + query.Encode()
	})
	r := find(t, keep(t, []string{"-"}, log), 5)
	for _, p := range r.Params {
		if (p.Threshold == "" || p.Hot == 0) && p.Name != "\xff" {
			t.Errorf("%q: %s, %d hot", p.Name, p.Why, p.Hot)
		}
	}
	if len(r.Params) != len(names) {
		t.Errorf("%d parameters, want %d", len(r.Params), len(names))
	}
}

func TestRoutes(t *testing.T) {
	var r routes
	paths := []string{
		"/", "/search", "/users/17/orders", "/users/18/orders/", "/users/me", "/users/19",
		"/files/0b8f4a52-1c1e-4a6d-9a52-0c1e4a6d9a52", "/files/7e57d004-2b97-0e7a-b45f-5387367791cd/meta",
		"/api/2/status", "/v1/things/01ARZ3NDEKTSV4RRFFQ69G5FAV", "/v1/things/01BX5ZZKBKACTAV9WEVGEMMVRZ", "/~a%7e/{x}", "/a%2fb",
	}
	for i := range 150 {
		paths = append(paths, "/shop/red-shoe-"+string(rune('a'+i%26))+string(rune('a'+i/26)), "/page"+strconv.Itoa(i)+".html")
	}
	for _, p := range paths {
		r.add("GET", p)
	}
	r.add("POST", "/search")
	r.add("HEAD", "/search")
	var got []string
	for _, route := range r.settle() {
		if !strings.Contains(route.pattern, ".html") {
			got = append(got, route.pattern)
		}
		if _, err := rules.ParseRoute(route.pattern); err != nil {
			t.Error(err)
		}
	}
	want := []string{"GET /a%2Fb", "GET /api/2/status", "GET /files/{file}", "GET /files/{file}/meta", "GET /search", "GET /shop/{shop}",
		"GET /users/me", "GET /users/{user}", "GET /users/{user}/orders", "GET /users/{user}/orders/{$}", "GET /v1/things/{thing}", "GET /{$}", "GET /~a~/%7Bx%7D", "POST /search"}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for path, want := range map[string]string{"/users/20/orders": "GET /users/{user}/orders 20", "/users/me": "GET /users/me ", "/shop/x": "GET /shop/{shop} x", "/nowhere": "", "/users": ""} {
		route, values := r.findRoute("GET", path, nil)
		text := ""
		if route != nil {
			text = route.pattern + " " + strings.Join(values, " ")
		}
		if text != want {
			t.Errorf("%s: %q, want %q", path, text, want)
		}
	}
}

func TestIsValue(t *testing.T) {
	for s, want := range map[string]bool{
		"": false, "17": true, "users": false, "v1": false, "1.1": false, "2017-06-30": false, "top10": false, "deadbeef": false, "decade": false,
		"0b8f4a52-1c1e-4a6d-9a52-0c1e4a6d9a52": true, "d41d8cd98f00b204e9800998ecf8427e": true, "01ARZ3NDEKTSV4RRFFQ69G5FAV": true,
		"red-shoe-42": false, "iphone15promax": false, "internationalization": false, "html5shiv": false,
	} {
		if got := isValue(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// An empty value is not treated as a hidden one.
func TestEmptyValueIsShown(t *testing.T) {
	r := find(t, keep(t, []string{"-"}, made(func(i int) string {
		return "/a?q=" + strings.Repeat(strconv.Itoa(burst(i)), i%2)
	})), 1)
	if p := r.Params[0]; p.TopValue != `""` {
		t.Errorf("the most frequent value is %q, want a pair of quotes", p.TopValue)
	}
}
