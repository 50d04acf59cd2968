package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// Each warning states the effect and the remedy.
func TestWarnings(t *testing.T) {
	const (
		resource = "that is the name of a resource, and matches no HTTP request"
		high     = "a limit of the threshold's rate or less takes effect as soon as a key is hot; without hot, the rule limits every key"
		literal  = " is no wildcard here but text: the rule matches this very path alone"
	)
	ofBody := func(names, method string) string {
		return fmt.Sprintf("by %q: a name without a source is a query parameter: a %s request that has it in the body makes no key, so the rule neither counts nor limits it", names, method)
	}
	body := func(name string) string {
		return fmt.Sprintf("|write form:%s for a field of a form or of the query, json:%[1]s for one of JSON, query:%[1]s if it is in the query alone", name)
	}
	ofLimit := func(limit, hot, whose string) string {
		return fmt.Sprintf("limit %s is above the threshold %s: a key between the two is listed as hot, and all its requests pass; they are refused only above %s%s", limit, hot, limit, whose)
	}
	// A caret marks the place of the warning.
	for marked, want := range map[string]string{
		// Bodies.
		"{match: {route: POST /login}, by: [^user], limit: 1/s}":                      ofBody("user", "POST") + body("user"),
		"{match: {route: PUT /a}, by: [query:x, ^user, mail], limit: 1/s}":            ofBody("user, mail", "PUT") + body("user"),
		"{match: {route: PATCH /a}, by: {combinations: [^a, b]}, hot: 1/s}":           ofBody("a, b", "PATCH") + body("a"),
		"{match: {route: POST /login}, by: ['query:user'], limit: 1/s}":               "",
		"{match: {route: POST /login}, by: ['form:user'], limit: 1/s}":                "",
		"{match: {route: POST /login}, by: ['json:user', ^user], limit: 1/s}":         ofBody("user", "POST") + body("user"),
		"{match: {route: 'POST /u/{id}'}, by: [path:id], limit: 1/s}":                 "",
		"{match: {route: POST /login}, by: each, limit: 1/s}":                         "",
		"{match: {route: POST /login}, limit: 1/s}":                                   "",
		"{match: {route: GET /login}, by: [user], limit: 1/s}":                        "",
		"{match: {route: /login}, by: [user], limit: 1/s}":                            "",
		"{match: {route: DELETE /login}, by: [user], limit: 1/s}":                     "",
		"{match: {route: '*'}, by: [user], limit: 1/s}":                               "",
		"{match: {route: ^POST orders}, by: ['query:user'], limit: 1/s, key: params}": "match.route \"POST orders\": " + resource + ": a path begins with a slash|did you mean \"POST /orders\"?",

		// Routes.
		"{match: {route: ^get /x}, limit: 1/s}":                 "match.route \"get /x\": " + resource + ": methods are in upper case|did you mean \"GET /x\"?",
		"{match: {route: ^Post  /x/y}, limit: 1/s}":             "match.route \"Post  /x/y\": " + resource + ": methods are in upper case|did you mean \"POST /x/y\"?",
		"{match: {route: ^get x}, limit: 1/s}":                  "match.route \"get x\": " + resource + ": a path begins with a slash|did you mean \"GET /x\"?",
		"{match: {route: ^'GET,POST /x'}, limit: 1/s}":          "match.route \"GET,POST /x\": " + resource + "|write \"/x\" for all methods, or a rule for each",
		"{match: {route: ^'* /x'}, limit: 1/s}":                 "match.route \"* /x\": " + resource + "|write \"/x\" for all methods, or a rule for each",
		"{match: {route: ^ANY /x}, limit: 1/s}":                 "match.route \"ANY /x\": no request has the method ANY|write \"/x\" for all methods",
		"{match: {route: ^PSOT /x}, limit: 1/s}":                "match.route \"PSOT /x\": the method PSOT is unusual|did you mean \"POST /x\"?",
		"{match: {route: PROPFIND /x}, limit: 1/s}":             "",
		"{match: {route: GET /x/}, limit: 1/s}":                 "",
		"{match: {route: 'GET /u/{id}/{rest...}'}, limit: 1/s}": "",
		"{match: {route: '/{$}'}, limit: 1/s}":                  "",
		"{match: {route: search}, limit: 1/s}":                  "",
		"{match: {route: send mail}, limit: 1/s}":               "",
		"{match: {route: get the mail}, limit: 1/s}":            "",
		"{match: {route: /v1/things:cancel}, limit: 1/s}":       "",
		"{match: {route: /a*b/c}, limit: 1/s}":                  "",
		"{match: {route: /products/%3Aid}, limit: 1/s}":         "",
		"{match: {route: /search/%2A}, limit: 1/s}":             "",
		"{match: {route: ^'/products/:id'}, limit: 1/s}":        "match.route \"/products/:id\": \":id\"" + literal + "|did you mean \"/products/{id}\"? The text itself is written %3Aid",
		"{match: {route: ^'GET /a/:x/b/:x'}, limit: 1/s}":       "match.route \"GET /a/:x/b/:x\": \":x\"" + literal + "|did you mean \"GET /a/{x}/b/{x2}\"? The text itself is written %3Ax",
		"{match: {route: ^'/a/{x}/:x'}, limit: 1/s}":            "match.route \"/a/{x}/:x\": \":x\"" + literal + "|did you mean \"/a/{x}/{x2}\"? The text itself is written %3Ax",
		"{match: {route: ^'/a/:order-id/b'}, limit: 1/s}":       "match.route \"/a/:order-id/b\": \":order-id\"" + literal + "|did you mean \"/a/{order_id}/b\"? The text itself is written %3Aorder-id",
		"{match: {route: ^'GET /search/*'}, limit: 1/s}":        "match.route \"GET /search/*\": \"*\"" + literal + "|did you mean \"GET /search/\"? The text itself is written %2A",
		"{match: {route: ^'/static/*path'}, limit: 1/s}":        "match.route \"/static/*path\": \"*path\"" + literal + "|did you mean \"/static/{path...}\"? The text itself is written %2Apath",
		"{match: {route: ^'/a/*/b/*/**'}, limit: 1/s}":          "match.route \"/a/*/b/*/**\": \"*\"" + literal + "|did you mean \"/a/{any}/b/{any2}/\"? The text itself is written %2A",
		"{match: {route: ^'/search*'}, limit: 1/s}":             "match.route \"/search*\": \"search*\"" + literal + "|did you mean \"/search/\"? The text itself is written search%2A",
		"{match: {route: ^'/u/<int:id>/<path:p>'}, limit: 1/s}": "match.route \"/u/<int:id>/<path:p>\": \"<int:id>\"" + literal + "|did you mean \"/u/{id}/{p...}\"? The text itself is written %3Cint%3Aid%3E",
		"{match: {route: ^'/x/(.*)'}, limit: 1/s}":              "match.route \"/x/(.*)\": \"(.*)\"" + literal + "|did you mean \"/x/\"? The text itself is written %28.%2A)",
		"{match: {route: ^'/:id'}, action: ignore}":             "match.route \"/:id\": \":id\"" + literal + "|did you mean \"/{id}\"? The text itself is written %3Aid",

		// Costs.
		"{match: {route: /a}, by: [q], hot: ^{cost: auto}}":                                              "hot.cost: the rule has no limit, so no key is held, and nothing proves that it slows the others down: keys are listed as suspected|add limit: {concurrency: auto}",
		"{match: {route: /a}, by: [q], hot: {cost: auto}, limit: {concurrency: auto, on_limit: shadow}}": "",

		// Limits.
		"{match: {route: /a}, by: [q], hot: 200/s, limit: ^500/s}":                                                           ofLimit("500/s", "200/s", "") + "|" + high,
		"{match: {route: /a}, by: [q], hot: 200/s, limit: {burst: 1, rate: ^201/s, scope: exact}}":                           ofLimit("201/s", "200/s", "") + "|" + high,
		"{match: {route: /a}, by: [q], hot: [500/s, 600/1m], limit: {rate: ^11/s, scope: share}}":                            ofLimit("11/s", "600/1m", "") + "|" + high,
		"{match: {route: /a}, by: [q], count: bytes, hot: 1000/s, limit: ^2000/s}":                                           ofLimit("2000 bytes/s", "1000 bytes/s", "") + "|" + high,
		"{match: {route: /a}, by: [q], hot: 200/s, limit: 200/s}":                                                            "",
		"{match: {route: /a}, by: [q], hot: 200/s, limit: 12000/1m}":                                                         "",
		"{match: {route: /a}, by: [q], hot: 1/3s, limit: 20/1m}":                                                             "",
		"{match: {route: /a}, by: [q], hot: 200/s, limit: {concurrency: 8}}":                                                 "",
		"{match: {route: /a}, by: [q], hot: {share: 20%, min: 10/s}, limit: 100/s}":                                          "",
		"{match: {route: /a}, by: [q], hot: 200/s}":                                                                          "",
		"{match: {route: /a}, by: [q], limit: 500/s}":                                                                        "",
		"{match: {route: /a}, by: [q], hot: 200/s, limit: 50/s, except: [{values: {q: a}, limit: 500/s}]}":                   "",
		"{match: {route: /a}, by: [q], hot: 200/s, limit: 50/s, except: [{values: {q: [a, b]}, hot: 300/s, limit: ^500/s}]}": ofLimit("500/s", "300/s", "") + "|" + high,
		"{match: {route: /a}, by: [q], hot: 200/s, limit: 50/s, except: [{values: {q: [a, b]}, hot: ^30/s}]}":                ofLimit("50/s", "30/s", "") + "|" + high,
	} {
		const outer = ", {id: clients, match: {route: '*'}, by: [addr:ip], limit: 1000/s}"
		rule, behind, _ := strings.Cut("rules: [{id: a, "+marked[1:]+outer+"]", "^")
		column := len(rule) + 1
		rule += behind
		f, err := Parse("f", []byte(rule))
		if err != nil {
			t.Errorf("%s:\n%v", rule, err)
			continue
		}
		var got []string
		for _, w := range f.Warnings() {
			got = append(got, w.Message+"|"+w.Hint)
			if w.Severity != SeverityWarning || w.File != "f" || w.Line != 1 || w.Column != column || w.Source != rule {
				t.Errorf("%s: %+v, want column %d", rule, w, column)
			}
		}
		if text := strings.Join(got, "\n"); text != want {
			t.Errorf("%s:\ngot  %s\nwant %s", rule, text, want)
		}
	}
}

// A limit by values that clients choose needs a second limit by the client's address.
func TestWarningOfFreeKeys(t *testing.T) {
	outer := func(route, rest string) string {
		return ", {id: clients, match: {route: " + route + "}, " + rest + "}"
	}
	for rules, want := range map[string]int{
		"{id: a, match: {route: POST /login}, by: [form:user], limit: 5/1h}":                                                          1,
		"{id: a, match: {route: POST /login}, by: [form:user], limit: {concurrency: 1}}":                                              1,
		"{id: a, match: {route: GET /u/x}, by: each, limit: 5/1h}":                                                                    1,
		"{id: a, match: {route: 'GET /u/{id}'}, by: [path:id], limit: 5/1h}":                                                          1,
		"{id: a, match: {route: GET /s}, by: [addr:ip, 'header:X-Id'], limit: 5/1h}":                                                  1,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("POST /s", "by: [addr:ip], limit: 1/s"):               1,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("GET /s", "by: [addr:ip], hot: 1/s, limit: 1/s"):      1,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("GET /s", "by: [addr:ip, 'query:q'], limit: 1/s"):     2,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("GET /s", "by: [addr:ip], limit: 1/s"):                0,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("/s", "by: ['addr:v4/24', 'addr:v6/48'], limit: 1/s"): 0,
		"{id: a, match: {route: GET /s}, by: [cookie:id], limit: 5/1h}" + outer("'*'", "by: [addr:ip], limit: {concurrency: 1}"):      0,
		"{id: a, match: {route: GET /s}, by: [cookie:id], hot: 5/s, limit: 5/s}":                                                      0,
		"{id: a, match: {route: GET /s}, by: [ctx:user], limit: 5/1h}":                                                                0,
		"{id: a, match: {route: GET /s}, limit: 5/1h}":                                                                                0,
	} {
		f, err := Parse("f", []byte("rules: ["+rules+"]"))
		if err != nil {
			t.Errorf("%s:\n%v", rules, err)
			continue
		}
		got := f.Warnings()
		for _, w := range got {
			if !strings.Contains(w.Message, "no limit by address") || !strings.Contains(w.Hint, "addr:ip") || w.Column < 2 {
				t.Errorf("%s: %+v", rules, w)
			}
		}
		if len(got) != want {
			t.Errorf("%s: %d warnings, want %d", rules, len(got), want)
		}
	}
}

// A hint's proposal is valid, and has no warning itself.
func TestProposedRoutesAreGood(t *testing.T) {
	for _, route := range []string{
		"get /x", "GET search", "/a/:b", "/a/:b?", "/a/:b<int>/c", "/a/:b(\\d+)", "/*", "/**", "/a/*b", "/a/{*b}", "/a/<b>", "/a/<path:b>", "/a/.*", "/a*",
		"/a/{b:[0-9]+}", "/a/{b?}", "/a/{id}/:id/*id", "/{a}/*/{b}/*", "PSOT /a/:b",
	} {
		own, foreign := ownPattern(route)
		if r, err := rules.ParseRoute(route); err == nil && foreign == "" {
			message, hint := doubtfulRoute(r)
			if _, own, _ = strings.Cut(hint, `"`); message == "" {
				t.Errorf("%s: no doubt", route)
			}
			own, _, _ = strings.Cut(own, `"`)
		}
		r, err := rules.ParseRoute(own)
		if err != nil {
			t.Errorf("%s: %s: %v", route, own, err)
		} else if message, _ := doubtfulRoute(r); message != "" && route != "PSOT /a/:b" {
			t.Errorf("%s: %s: %s", route, own, message)
		}
	}
}

// The hints for wildcards that are errors give their correct spelling, too.
func TestHintOfForeignWildcards(t *testing.T) {
	for route, want := range map[string]string{
		"GET /u/{id:[0-9]+}": `did you mean "GET /u/{id}"?`,
		"/u/{id?}":           `did you mean "/u/{id}"?`,
		"/files/{*rest}":     `did you mean "/files/{rest...}"?`,
		"/a/:order-id?":      `did you mean "/a/{order_id}"?`,
		"/a{b}":              `for example "GET /search", "/u/{id}", "/static/" or "*"`,
	} {
		_, err := Parse("f", []byte("rules: [{id: a, match: {route: '"+route+"'}, limit: 1/s}]"))
		var problems Problems
		if errors.As(err, &problems); len(problems) != 1 || problems[0].Hint != want {
			t.Errorf("%s: %v, want %s", route, err, want)
		}
	}
}

// Warnings have places and are in the order of the file. Only warnings about settings that the
// file does not have are without a place.
func TestPlacesOfWarnings(t *testing.T) {
	f, err := Parse("f", []byte("rules:\n- {id: b, match: {route: /x/*}, limit: 1/s}\naggregator:\n  listen: [127.0.0.1:1, udp://:8125]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := f.Warnings().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	const want = `f:2:26: warning: match.route "/x/*": "*" is no wildcard here but text: the rule matches this very path alone
  - {id: b, match: {route: /x/*}, limit: 1/s}
                           ^
  hint: did you mean "/x/"? The text itself is written %2A
f:4:25: warning: aggregator.listen :8125: anyone who can send there can get any key limited, and hide hot keys
    listen: [127.0.0.1:1, udp://:8125]
                          ^
  hint: set aggregator.trust to signed or listed; docs/SECURITY.md explains both
`
	if text.String() != want {
		t.Errorf("got\n%s\nwant\n%s", text.String(), want)
	}
	f.Aggregator.Listen = []string{"tcp://:9"}
	if got := f.Warnings(); len(got) != 2 || got[0].Line != 0 || got[0].File != "" || !strings.Contains(got[0].Message, "tcp://:9") {
		t.Errorf("%+v", got)
	}
}

func TestWarningsOfRedacted(t *testing.T) {
	const rules = "rules:\n  - {id: a, match: {route: /s}, by: ['header:x-api-key'], hot: 1/s, limit: 1/s}\n"
	file, err := Parse("f", []byte("secrets: {redact: [q, 'path:id', 'header:X-Api-Key', 'cookie:cart'], redact_key_env: K}\n"+rules))
	if err != nil {
		t.Fatal(err)
	}
	all := file.Warnings()
	if len(all) != 1 || all[0].Line != 1 || all[0].Column != 54 || !strings.Contains(all[0].Message, `secrets.redact "cookie:cart": no rule has the parameter in by`) {
		t.Errorf("%+v", all)
	}
}
