package config

import (
	"fmt"
	"strings"
	"testing"
)

// rule puts the fields of one rule into a file; they begin in line 4.
func rule(lines ...string) string {
	return "rules:\n  - id: r\n    match: {route: \"GET /u/{id}\"}\n    " + strings.Join(lines, "\n    ") + "\n"
}

const good = "rules: [{id: a, match: {route: '*'}, action: ignore}]\n"

var badFiles = []struct {
	name, source string
	want         []string // LINE:COLUMN: message
}{
	// Bytes.
	{"empty", "", []string{"1:1: the file is empty"}},
	{"blank", " \n\n", []string{"1:1: the file is empty"}},
	{"comments", "# rules\n# none\n", []string{"1:1: the file is empty"}},
	{"header alone", "---\n", []string{"1:1: the file is empty"}},
	{"large", good + strings.Repeat("#", MaxSize), []string{"1:1: the file is larger than 1 MiB"}},
	{"not UTF-8", "namespace: \xe9t\xe9\nx: \xff\n", []string{"1:12: byte 0xE9 is not UTF-8", "2:4: byte 0xFF is not UTF-8"}},
	{"UTF-16", "\xff\xfer\x00", []string{"1:1: byte 0xFF is not UTF-8"}},
	{"control", "a: é\x00b\nb: \x1b[1m\n", []string{"1:5: character U+0000 is not allowed", "2:4: character U+001B is not allowed"}},
	{"lone CR", "a: b\rc: d\n", []string{"1:5: character U+000D is not allowed"}},
	{"BOM and CRLF", "\uFEFFnamespace: a b\r\nno_match: c\r\n" + good, []string{
		`1:12: namespace "a b": want 1 to 64 of A-Z a-z 0-9 _ -`, `2:11: no_match "c": want allow or deny`,
	}},
	{"BOM within", "a: \uFEFFb\n", []string{"1:4: character U+FEFF is not allowed"}},

	// YAML.
	{"tab", "rules:\n\t- id: a\n", []string{`2:1: not YAML: found character '\t' that cannot start any token`}},
	{"tab in braces", "a: {b: 1,\tc: 2}\n", []string{`1:11: not YAML: tab character cannot use as a map key directly`}},
	{"open quote", "a: \"b\n", []string{"1:4: not YAML: could not find end character of double-quoted text"}},
	{"open bracket", "a: [b\n", []string{"1:4: not YAML: sequence end token ']' not found"}},
	{"bare braces", "m: {route: GET /u/{id}}\n", []string{"1:19: not YAML: ',' or '}' must be specified"}},
	{"reserved", "a: @b\nc: `d\n", []string{"1:4: not YAML: '@' is a reserved character", "2:4: not YAML: '`' is a reserved character"}},
	{"two colons", "a: b: c\n", []string{"1:4: not YAML: mapping value is not allowed in this context"}},
	{"indentation", "a:\n  b: 1\n c: 2\n", []string{"3:2: not YAML: value is not allowed in this context"}},
	{"bare star", "a: {route: *, q: 1}\n", []string{"1:12: aliases (*name) are not supported"}},
	{"all that is refused", "a: &x 1\nb: *x\nc:\n  <<: *x\nd: !!str e\n? f\n: g\n", []string{
		"1:4: anchors (&name) are not supported", "2:4: aliases (*name) are not supported",
		"4:3: merge keys (<<) are not supported", "4:7: aliases (*name) are not supported",
		"5:4: tags (!name) are not supported", `6:1: complex keys ("? ") are not supported`,
	}},
	{"directive", "%YAML 1.2\n---\n" + good, []string{"1:1: directives (%NAME) are not supported"}},
	{"second document", good + "---\n" + good, []string{"2:1: a second document begins here"}},
	{"after the end", good + "...\n" + good, []string{"3:1: a second document begins here"}},
	{"deep", "a: " + strings.Repeat("[", 30) + strings.Repeat("]", 30), []string{"1:20: nested more than 16 deep"}},
	{"deep in a line", strings.Repeat("- ", 30) + "a", []string{"1:33: nested more than 16 deep"}},
	{"many tokens", "[" + strings.Repeat("[],", 16_667) + "]\n", []string{"1:50001: more than 50000 words and signs up to here"}},
	{"long name", strings.Repeat("a", 300) + ": 1\n", []string{"1:1: a name is longer than 256 bytes"}},
	{"duplicates", good + "namespace: a\nnamespace: b\n\"namespace\": c\n", []string{
		`3:1: "namespace" is there twice, first in line 2`, `4:1: "namespace" is there twice, first in line 2`,
	}},

	// The top of the file.
	{"a list", "- a\n", []string{"1:1: the file: want fields, found a list"}},
	{"text", "hello\n", []string{"1:1: the file: want fields, found text"}},
	{"no rules", "namespace: a\n", []string{"1:1: rules is missing"}},
	{"empty rules", "rules: []\n", []string{"1:8: rules is empty"}},
	{"null rules", "rules:\n", []string{"1:1: rules is empty"}},
	{"rules of another kind", "rules: {a: 1}\n", []string{"1:8: rules: want a list, found fields"}},
	{"null rule", "rules:\n  -\n  - 1\n", []string{"2:3: a rule: want fields, found nothing", "3:5: a rule: want fields, found text"}},
	{"unknown", good + "namspace: a\nxyz: 1\nredact: [q]\n", []string{
		`2:1: unknown field "namspace" in the file`, `3:1: unknown field "xyz" in the file`, "4:1: redact is not built yet",
	}},
	{"words", good + "evaluate: frist\nno_match: [deny]\nnamespace: {a: 1}\n", []string{
		`2:11: evaluate "frist": want all or first`, "3:11: no_match: want text, found a list", "4:12: namespace: want text, found fields",
	}},
	{"long namespace", good + "namespace: " + strings.Repeat("a", 65), []string{
		`2:12: namespace "` + strings.Repeat("a", 64) + `…": want 1 to 64 of A-Z a-z 0-9 _ -`,
	}},
	{"secrets", good + "secrets: {extra: pin, except: [[a], \"\"], more: 1}\n", []string{
		"2:18: secrets.extra: want a list, found text", "2:32: secrets.except: want text, found a list",
		"2:37: secrets.except: a name is empty", `2:42: unknown field "more" in secrets`,
	}},
	{"secrets with parts", good + "secrets: {extra: [pin, \"user[pin]\"]}\n", []string{
		`2:24: secrets.extra: "user[pin]" has parts`,
	}},
	{"aggregator", good + "aggregator:\n  listen: localhost\n  http: :99999\n  redis: localhost:6379\n  memory: 12 parsecs\n", []string{
		`3:11: aggregator.listen "localhost": want host:port`, `4:9: aggregator.http ":99999": want host:port`,
		"5:10: aggregator.redis: want a URL that begins with redis://, rediss:// or unix://",
		`6:11: aggregator.memory "12 parsecs": want a size of at least 1MiB, for example 64MB or 256MiB`,
	}},
	{"redis database", good + "aggregator: {redis: redis://h/x, memory: 1MB}\n", []string{
		"2:21: aggregator.redis: want a URL that begins with redis://, rediss:// or unix://",
		`2:42: aggregator.memory "1MB": want a size of at least 1MiB, for example 64MB or 256MiB`,
	}},
	{"password in the wrong place", good + "aggregator: {listen: 'redis://u:hush@h'}\n", []string{
		`2:22: aggregator.listen "redis://u:****@h": want host:port`,
	}},

	// Rules.
	{"bare rule", "rules:\n  - {}\n", []string{
		"2:5: the rule has no id", "2:5: the rule has no match", "2:5: the rule has neither hot nor limit: it does nothing",
	}},
	{"ids", "rules:\n  - {id: Big, match: {route: '*'}, action: ignore}\n  - {id: a, match: {route: '*'}, action: ignore}\n  - {id: a, match: {route: '*'}, action: ignore}\n  - {id: [a], match: {route: '*'}, action: ignore}\n", []string{
		`2:10: id "Big": want 1 to 64 of a-z 0-9 _ -`, `4:10: id "a" is used twice, first in line 3`, "5:10: id: want text, found a list",
	}},
	{"empty fields", rule("hot:", "limit: ~"), []string{"4:5: hot is empty", "5:5: limit is empty"}},
	{"unknown in a rule", rule("limits: {rate: 1/s}", "priority: 1", "action: ignroe"), []string{
		`4:5: unknown field "limits" in a rule`, "5:5: priority is not built yet", `6:13: action "ignroe": want ignore`,
	}},
	{"ignore and more", rule("action: ignore", "by: all", "hot: {rate: 1/s}", "limit: {rate: 1/s}", "prefix: a", "key: full"), []string{
		"5:9: by: an ignore rule only exempts requests from the others", "6:10: hot: an ignore rule only exempts requests from the others",
		"7:12: limit: an ignore rule only exempts requests from the others", "8:13: prefix: an ignore rule only exempts requests from the others",
		"9:10: key: an ignore rule only exempts requests from the others",
	}},
	{"match", "rules:\n  - {id: a, match: 1, action: ignore}\n  - {id: b, match: {query: {a: 1}}, action: ignore}\n  - {id: c, match: {route: [x], host: y}, action: ignore}\n", []string{
		"2:20: match: want fields, found text", "3:20: match.route is missing", "4:28: match.route: want text, found a list", `4:33: unknown field "host" in match`,
	}},
	{"routes", "rules:\n  - {id: a, match: {route: ''}, action: ignore}\n  - {id: b, match: {route: '/a{b}'}, action: ignore}\n  - {id: c, match: {route: '/a?b=c'}, action: ignore}\n", []string{
		`2:28: match.route "": the route is empty`, `3:28: match.route "/a{b}": a wildcard is a whole segment: /{name}/`,
		`4:28: match.route "/a?b=c": a route has no query; use match.query`,
	}},
	{"query", "rules:\n  - {id: a, match: {route: '*', query: [a]}, action: ignore}\n  - {id: b, match: {route: '*', query: {a: , '': 1, c: [1]}}, action: ignore}\n", []string{
		"2:40: match.query: want names with values, found a list", `3:41: match.query "a" has no value`,
		"3:46: match.query: a name is empty", `3:56: match.query "c": want text, found a list`,
	}},

	// by.
	{"by a word", rule("by: q", "limit: {rate: 1/s}"), []string{`4:9: by "q": want all, each or a list of names`}},
	{"by fields", rule("by: {q: 1}", "limit: {rate: 1/s}"), []string{"4:9: by: want text, found fields"}},
	{"by nobody", rule("by: []", "limit: {rate: 1/s}"), []string{"4:9: by: the list is empty"}},
	{"by names", rule("limit: {rate: 1/s}", "by: [q, query:q, path:sku, path:id, [x], '', 'query:', 'a:b', ':b', 'header:x', id]"), []string{
		`5:13: by "query:q": the parameter is named twice`, `5:22: by "path:sku": the route has no wildcard {sku}`,
		"5:41: by: want text, found a list", `5:46: by "": the name is empty`, `5:50: by "query:": the name is empty`,
		`5:60: by "a:b": unknown source "a"`, `5:67: by ":b": unknown source ""`, `5:73: by "header:x": source "header" is not built yet`,
		`5:85: by "id": the route has a wildcard {id}, but a bare name is one of the query`,
	}},
	{"unbuilt sources", rule("limit: {rate: 1/s}", "by: ['cookie:x', 'addr:x', 'form:x', 'json:x', 'rpc:x']"), []string{
		`5:10: by "cookie:x": source "cookie" is not built yet`, `5:22: by "addr:x": source "addr" is not built yet`,
		`5:32: by "form:x": source "form" is not built yet`, `5:42: by "json:x": source "json" is not built yet`,
		`5:52: by "rpc:x": source "rpc" is not built yet`,
	}},
	{"by secrets", "secrets: {extra: [pin], except: [token]}\n" + rule("hot: {rate: 1/s}", "by: [pin, token, Api-Key, 'user[password]']"), []string{
		`6:10: by "pin": the parameter looks secret and never leaves the process, so it can make no key`,
		`6:22: by "Api-Key": the parameter looks secret and never leaves the process, so it can make no key`,
		`6:31: by "user[password]": the parameter looks secret and never leaves the process, so it can make no key`,
	}},

	// hot.
	{"hot without rate", rule("hot: {hold: 1s, rte: 1/s}"), []string{"4:10: hot.rate is missing", `4:21: unknown field "rte" in hot`}},
	{"hot as text", rule("hot: 200/s"), []string{"4:10: hot: want fields, found text"}},
	{"bad rate", rule("hot: {rate: 0/s}"), []string{`4:17: hot.rate "0/s": the count must be a whole number of at least 1`}},
	{"high rate", rule("hot: {rate: 20000000/s}"), []string{`4:17: hot.rate "20000000/s": more than 10000000 per second`}},
	{"short window", rule("hot: {rate: 10/500ms}"), []string{`4:17: hot.rate "10/500ms": the window must be 1s to 1h`}},
	{"long window", rule("hot: {rate: 10/2h}"), []string{`4:17: hot.rate "10/2h": the window must be 1s to 1h`}},
	{"exit above, hold bad", rule("hot: {rate: 200/s, exit: 250/s, hold: 10}"), []string{
		`4:30: hot.exit "250/s" is above hot.rate 200/s`, `4:43: hot.hold "10": want a duration, for example 10s or 1m`,
	}},
	{"exit count above", rule("hot: {rate: 200/s, exit: 201, hold: -1s}"), []string{
		`4:30: hot.exit "201" is above hot.rate 200/s`, `4:41: hot.hold "-1s": want a duration, for example 10s or 1m`,
	}},
	{"exit of another window", rule("hot: {rate: 200/s, exit: 160/1m}"), []string{`4:30: hot.exit "160/1m": the window must be that of hot.rate 200/s`}},
	{"exit of no share", rule("hot: {rate: 200/s, exit: 120%}"), []string{`4:30: hot.exit "120%": want 1% to 100%`}},
	{"exit of too little", rule("hot: {rate: 200/s, exit: 0.5%}"), []string{`4:30: hot.exit "0.5%": want 1% to 100%`}},
	{"exit of strange digits", rule("hot: {rate: 200/s, exit: 0x10%}"), []string{`4:30: hot.exit "0x10%": want 1% to 100%`}},
	{"exit of no rate", rule("hot: {rate: 200/s, exit: x/s}"), []string{`4:30: hot.exit "x/s": the count must be a whole number of at least 1`}},
	{"exit of nothing", rule("hot: {rate: 200/s, exit: low}"), []string{`4:30: hot.exit "low": want a share, a rate or a whole number of at least 1`}},
	{"exit without rate", rule("hot: {rate: x, exit: 0}"), []string{
		`4:17: hot.rate "x": want N/D, for example "200/s" or "60/1m"`, `4:26: hot.exit "0": want a share, a rate or a whole number of at least 1`,
	}},
	{"share", rule("hot: {rate: 20%}"), []string{`4:17: hot.rate "20%" is not built yet`}},
	{"jump", rule("hot: {rate: 8x, top_k: 10}"), []string{`4:17: hot.rate "8x" is not built yet`, "4:21: hot.top_k is not built yet"}},

	// limit.
	{"limit without rate", rule("limit: {burst: 1}"), []string{"4:12: limit.rate is missing"}},
	{"limit rate and burst", rule("limit: {rate: fast, burst: 0}"), []string{
		`4:19: limit.rate "fast": want N/D, for example "200/s" or "60/1m"`, `4:32: limit.burst "0": want a whole number of at least 1`,
	}},
	{"burst of words", rule("limit: {rate: 1/s, burst: 1.5}"), []string{`4:31: limit.burst "1.5": want a whole number of at least 1`}},
	{"bucket that never fills", rule("limit: {rate: 1/1h, burst: 1000000}"), []string{
		"4:32: limit: a bucket of 1000000 tokens at 1/1h takes over 73 years to fill",
	}},
	{"rate that never fills", rule("limit: {rate: 1/30000d}"), []string{"4:19: limit: a bucket of 1 tokens at 1/720000h takes over 73 years to fill"}},
	{"not built", rule("limit: {rate: 1/s, scope: cluster, concurrency: 8, wait: 2s, on_limit: wait, algorithm: gcra, priority: 1, penalty: 1m, warm_up: 1m}"), []string{
		`4:31: limit.scope "cluster" is not built yet`, "4:40: limit.concurrency is not built yet", "4:56: limit.wait is not built yet",
		`4:76: limit.on_limit "wait" is not built yet`, `4:93: limit.algorithm "gcra" is not built yet`,
		"4:99: limit.priority is not built yet", "4:112: limit.penalty is not built yet", "4:125: limit.warm_up is not built yet",
	}},
	{"misspelt", rule("limit: {rate: 1/s, scope: instnace, on_limit: drop, algorithm: [x]}"), []string{
		`4:31: limit.scope "instnace": want instance`, `4:51: limit.on_limit "drop": want reject or shadow`, "4:68: limit.algorithm: want text, found a list",
	}},

	// prefix and key.
	{"prefix", rule("hot: {rate: 1/s}", "prefix: a..b"), []string{`5:13: prefix "a..b": want parts of A-Z a-z 0-9 _ - with dots between, 129 bytes at most`}},
	{"prefix without hot", rule("limit: {rate: 1/s}", "prefix: a"), []string{"5:13: prefix: the rule has no hot"}},
	{"prefix with the marker", rule("hot: {rate: 1/s}", "prefix: a.hot_param"), []string{`5:13: prefix "a.hot_param": "hot_param" stands between a prefix and its key`}},
	{"id as the marker", "rules:\n  - {id: hot_param, match: {route: '*'}, hot: {rate: 1/s}}\n", []string{
		`2:10: prefix "hotparam.hot_param": "hot_param" stands between a prefix and its key`,
	}},
	{"same prefix", "rules:\n  - {id: a, match: {route: '*'}, hot: {rate: 1/s}, prefix: x.y}\n  - {id: b, match: {route: '*'}, hot: {rate: 1/s}, prefix: x.y}\n", []string{
		`3:60: prefix "x.y" is that of the rule in line 2 too: their counts could not be told apart`,
	}},
	{"default prefix taken", "namespace: shop\nrules:\n  - {id: a, match: {route: '*'}, hot: {rate: 1/s}, prefix: shop.b}\n  - {id: b, match: {route: '*'}, hot: {rate: 1/s}}\n", []string{
		`4:10: prefix "shop.b" is that of the rule in line 3 too: their counts could not be told apart`,
	}},
	{"key", rule("limit: {rate: 1/s}", "key: params"), []string{"5:10: key: the rule has neither hot nor by, so it makes no keys"}},
	{"key of another kind", rule("hot: {rate: 1/s}", "key: half"), []string{`5:10: key "half": want params or full`}},
}

func TestBadFiles(t *testing.T) {
	for _, test := range badFiles {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, p := range problemsOf(t, test.source) {
				got = append(got, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Message))
				if p.Hint == "" {
					t.Errorf("%q has no hint", p.Message)
				}
			}
			if g, w := strings.Join(got, "\n"), strings.Join(test.want, "\n"); g != w {
				t.Errorf("got:\n%s\nwant:\n%s", g, w)
			}
		})
	}
}

// The reader must know at once what to do: the hints that say more than their
// message.
func TestHints(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{"a: {route: *}\n", `write the value itself; put a star in quotes: "*"`},
		{"m: {route: GET /u/{id}}\n", `close every bracket, and put text that holds { } [ ] or , in quotes, as in route: "GET /u/{id}"`},
		{"a:\n\t- b\n", "use spaces here, not tabs"},
		{"a: {b: 1,\tc: 2}\n", "use spaces here, not tabs"},
		{"a: @b\n", "put the text in quotes"},
		{"a: 'b\n", "close the quotes"},
		{"a: b: c\n", `check the indentation, and put text that holds ": " or " #" in quotes`},
		{rule("limits: {rate: 1/s}", "action: ignore"), `did you mean "limit"?`},
		{rule("limit: {rate: 1/s, scope: instanse}"), `did you mean "instance"?`},
		{rule("limit: {rate: 1/s, scope: share}"), "what works today: scope: instance, a bucket of its own on each instance"},
		{rule("hot: {rate: 1/s}", "by: [token]"), "if it holds no secret, add its name to secrets.except in the rules file"},
		{rule("hot: {rate: 1/s}", "by: [id]"), "write path:id for the wildcard, query:id for the query"},
		{rule("hot: {rate: 1/s}", "by: q"), "by: all, by: each, or names in a list as in by: [q, path:id]"},
		{rule("hot: {rate: 20%}"), "what works today: an absolute rate, such as 200/s"},
	} {
		if got := problemsOf(t, test.source)[0].Hint; got != test.want {
			t.Errorf("%q:\ngot  %s\nwant %s", test.source, got, test.want)
		}
	}
}
