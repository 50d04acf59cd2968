package config

import (
	"fmt"
	"strings"
	"testing"
)

// rule returns a file with one rule of these fields, which begin in line 4.
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
	{"colons in braces", "a: {path:id: 7, b:c, \"d\":e, f:, g:1}\nb:\n  path:id: 7\n", []string{
		"1:9: a colon without a space behind it", "1:18: a colon without a space behind it", "1:34: a colon without a space behind it",
	}},
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
		`2:1: unknown field "namspace" in the file`, `3:1: unknown field "xyz" in the file`, `4:1: unknown field "redact" in the file`,
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
	{"redact", good + "secrets: {except: [token], redact: [q, q, 'header:X Y', 'path:id', 'pat:id', [a], 'cookie:token'], redact_key_env: 1K}\n", []string{
		`2:40: secrets.redact "q": the parameter is named twice`, `2:43: secrets.redact "header:X Y": no header can have this name`,
		`2:68: secrets.redact "pat:id": unknown source "pat"`,
		"2:78: secrets.redact: want text, found a list", `2:83: secrets.redact "cookie:token": secrets.except has the name too`,
		"2:116: secrets.redact_key_env is no name of a variable",
	}},
	{"redact without a key", good + "secrets: {redact: [q]}\n", []string{"2:19: secrets.redact without a key"}},
	{"a key without redact", good + "secrets: {redact_key_file: k}\n", []string{"2:28: secrets has a key and no redact"}},
	{"redact nothing", good + "secrets: {redact: [], redact_key_file: k, redact_key_env: K}\n", []string{
		"2:19: secrets.redact: the list is empty", "2:59: secrets.redact_key_file and redact_key_env are both there",
	}},
	{"exceptions of redacted values", "secrets: {redact: [q], redact_key_env: K}\n" + rule("hot: 9/s", "by: [q]", "except: [{values: {q: a}, hot: 5/s}]"), []string{
		`7:36: except.hot "5/s": an exception of the rule names a redacted parameter, whose values the aggregator does not know, so it cannot know which keys have another threshold`,
	}},
	{"levels that are redacted", "secrets: {redact: ['addr:ip'], redact_key_env: K}\n" + rule("hot: 9/s", "by: {combinations: ['addr:ip', 'addr:v4/24']}"), []string{
		`6:25: by "addr:ip": the level is redacted, so the aggregator cannot know the networks of an address at other levels`,
	}},
	{"secrets with parts", good + "secrets: {extra: [pin, \"user[pin]\"]}\n", []string{
		`2:24: secrets.extra: "user[pin]" has parts`,
	}},
	{"aggregator", good + "aggregator:\n  listen: localhost\n  http: :99999\n  redis: localhost:6379\n  memory: 12 parsecs\n", []string{
		`3:11: aggregator.listen "localhost": want host:port, tcp://host:port, unix:///path or unixstream:///path`, `4:9: aggregator.http ":99999": want host:port`,
		"5:10: aggregator.redis: want a URL that begins with redis://, rediss:// or unix://",
		`6:11: aggregator.memory "12 parsecs": want a size of at least 1MiB, for example 64MB or 256MiB`,
	}},
	{"redis database", good + "aggregator: {redis: redis://h/x, memory: 1MB}\n", []string{
		"2:21: aggregator.redis: want a URL that begins with redis://, rediss:// or unix://",
		`2:42: aggregator.memory "1MB": want a size of at least 1MiB, for example 64MB or 256MiB`,
	}},
	{"password in the wrong place", good + "aggregator: {listen: 'redis://u:hush@h'}\n", []string{
		`2:22: aggregator.listen "redis://u:****@h": want host:port, tcp://host:port, unix:///path or unixstream:///path`,
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
		`4:5: unknown field "limits" in a rule`, `5:5: unknown field "priority" in a rule`, `6:13: action "ignroe": want ignore`,
	}},
	{"ignore and more", rule("action: ignore", "by: all", "hot: {rate: 1/s}", "limit: {rate: 1/s}", "prefix: a", "key: full", "count: ms", "except: []", "allow: {q: a}", "block: {q: a}"), []string{
		"5:9: by: an ignore rule only exempts requests from the others", "6:10: hot: an ignore rule only exempts requests from the others",
		"7:12: limit: an ignore rule only exempts requests from the others", "8:13: prefix: an ignore rule only exempts requests from the others",
		"9:10: key: an ignore rule only exempts requests from the others", "10:12: count: an ignore rule only exempts requests from the others",
		"11:13: except: an ignore rule only exempts requests from the others", "12:12: allow: an ignore rule only exempts requests from the others",
		"13:12: block: an ignore rule only exempts requests from the others",
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
	{"by a word", rule("by: q", "limit: {rate: 1/s}"), []string{`4:9: by "q": want all, each, combinations or a list of names`}},
	{"by fields", rule("by: {q: 1}", "limit: {rate: 1/s}"), []string{`4:10: unknown field "q" in by`}},
	{"by no fields", rule("by: {}", "hot: 1/s"), []string{"4:9: by is empty"}},
	{"combinations of nothing", rule("by: {combinations: []}", "hot: 1/s"), []string{"4:24: by: the list is empty"}},
	{"combinations of a word", rule("by: {combinations: q}", "hot: 1/s"), []string{"4:24: by.combinations: want a list of names, found text"}},
	{"combinations of many", rule("by: {combinations: [a, b, c, d, token]}", "hot: 1/s"), []string{
		"4:37: by: more than 4 names to combine",
		`4:37: by "token": the parameter looks secret and never leaves the process, so it can make no key`,
	}},
	{"combinations without hot", rule("by: combinations", "limit: 1/s"), []string{"4:9: by: combinations are for rules with hot"}},
	{"named combinations without hot", rule("by: {combinations: [a]}", "limit: 1/s"), []string{"4:9: by: combinations are for rules with hot"}},
	{"by nobody", rule("by: []", "limit: {rate: 1/s}"), []string{"4:9: by: the list is empty"}},
	{"by names", rule("limit: {rate: 1/s}", "by: [q, query:q, path:sku, path:id, [x], '', 'query:', 'a:b', ':b', id]"), []string{
		`5:13: by "query:q": the parameter is named twice`, `5:22: by "path:sku": the route has no wildcard {sku}`,
		"5:41: by: want text, found a list", `5:46: by "": the name is empty`, `5:50: by "query:": the name is empty`,
		`5:60: by "a:b": unknown source "a"`, `5:67: by ":b": unknown source ""`,
		`5:73: by "id": the route has a wildcard {id}, but a bare name is one of the query`,
	}},
	{"names of RPC fields", rule("limit: {rate: 1/s}", "by: ['rpc:x-y']"), []string{`5:10: by "rpc:x-y": no field of a message can have this name`}},
	{"paths of JSON", rule("limit: {rate: 1/s}", `by: ['json:a..b', 'json:', 'json:a\b', 'json:a\*', 'form:', 'fom:x']`), []string{
		`5:10: by "json:a..b": a name between two dots is empty`, `5:23: by "json:": the name is empty`, `5:32: by "json:a\\b": a backslash may only precede a dot, a star or a backslash`,
		`5:44: by "json:a\\*": a star within a name needs no backslash`, `5:56: by "form:": the name is empty`, `5:65: by "fom:x": unknown source "fom"`,
	}},
	{"bodies", good + "bodies: {max: 0, total: 1x, least: 1}\n", []string{
		`2:15: bodies.max "0": want a size of at least 1, such as 64KiB`, `2:25: bodies.total "1x": want a size of at least 1, such as 64MiB`, `2:29: unknown field "least" in bodies`,
	}},
	{"max_keys of 0", good + "max_keys: 0\n", []string{`2:11: max_keys "0": want 1 to 16777216`}},
	{"too many max_keys", good + "max_keys: 16777217\n", []string{`2:11: max_keys "16777217": want 1 to 16777216`}},
	{"no bodies", good + "bodies: {}\n", []string{"2:9: bodies is empty"}},
	{"a body that is too large", good + "bodies: {max: 65MiB}\n", []string{`2:15: bodies.max "65MiB": want a size of 1 byte to 64MiB`}},
	{"bodies that one does not fit in", good + "bodies: {max: 2MiB, total: 1MiB}\n", []string{`2:28: bodies.total "1MiB": want a size of at least bodies.max`}},
	{"bodies that the default does not fit in", good + "bodies: {total: 1KiB}\n", []string{`2:17: bodies.total "1KiB": want a size of at least bodies.max`}},
	{"unread", rule("limit: {rate: 1/s}", "by: ['form:x']", "unread: refuse"), []string{`6:13: unread "refuse": want limit or pass or reject`}},
	{"unread without a body", rule("limit: {rate: 1/s}", "by: [q]", "unread: pass"), []string{"6:13: unread: neither by nor match names a parameter of the body"}},
	{"secrets of bodies", rule("hot: 1/s", "by: ['form:user[password]', 'json:auth.x']"), []string{
		`5:10: by "form:user[password]": the parameter looks secret and never leaves the process, so it can make no key`,
		`5:33: by "json:auth.x": the parameter looks secret and never leaves the process, so it can make no key`,
	}},
	{"names of sources", rule("limit: {rate: 1/s}", "by: ['header:x y', 'header:Cookie', 'cookie:a=b', 'addr:v4', 'addr:v4/33', 'ctx:', 'heder:x']"), []string{
		`5:10: by "header:x y": no header can have this name`, `5:24: by "header:Cookie": the header holds all cookies, and secrets among them`,
		`5:41: by "cookie:a=b": no cookie can have this name`, `5:55: by "addr:v4": an address has no such level`, `5:66: by "addr:v4/33": an address has no such level`,
		`5:80: by "ctx:": the name is empty`, `5:88: by "heder:x": unknown source "heder"`,
	}},
	{"secrets of sources", rule("hot: 1/s", "by: ['header:Authorization', 'cookie:session', 'ctx:jwt']"), []string{
		`5:10: by "header:Authorization": the parameter looks secret and never leaves the process, so it can make no key`,
		`5:34: by "cookie:session": the parameter looks secret and never leaves the process, so it can make no key`,
		`5:52: by "ctx:jwt": the parameter looks secret and never leaves the process, so it can make no key`,
	}},
	{"levels in one key", rule("limit: {rate: 1/s}", "by: ['addr:ip', 'addr:v4/24']"), []string{`5:21: by "addr:v4/24": a key of addr:ip and of another level of the same address is a key of the narrower level alone`}},
	{"the same level twice", rule("hot: 1/s", "by: {combinations: ['addr:v6/64', 'addr:ip']}"), []string{`5:39: by "addr:ip": addr:v6/64 is the same network`}},
	{"matches of sources", "rules:\n  - {id: a, match: {route: '*', query: {'header:': x, 'addr:v4/0': x, 'a:b': x, 'rpc:x.': x}}, limit: 1/s}\n", []string{
		`2:41: match.query "header:": the name is empty`, `2:55: match.query "addr:v4/0": an address has no such level`,
		`2:71: match.query "a:b": unknown source "a"`, `2:81: match.query "rpc:x.": no field of a message can have this name`,
	}},
	{"priority of a source", rule("limit: {rate: 1/s, priority: {by: 'addr:x', first: [a]}}"), []string{`4:39: limit.priority.by "addr:x": an address has no such level`}},
	{"no client", good + "client: {}\n", []string{"2:9: client is empty"}},
	{"a client without a header", good + "client: {trusted: [10.0.0.0/8]}\n", []string{"2:9: client.header is missing: it names the header in which trusted proxies send their client"}},
	{"a client without proxies", good + "client: {header: forwarded}\n", []string{`2:18: client.header "forwarded": no proxy is trusted, so the header would never be read`}},
	{"a client's header", good + "client: {trusted: unix, header: x-real-ip, hops: 2}\n", []string{
		"2:19: client.trusted: want a list, found text", `2:33: client.header "x-real-ip": want x-forwarded-for or forwarded`, `2:44: unknown field "hops" in client`,
	}},
	{"a client's proxies", good + "client: {trusted: [unix, 10.0.0.1/8, proxy, '::ffff:10.0.0.0/104'], header: forwarded}\n", []string{
		`2:26: client.trusted "10.0.0.1/8": has bits behind its prefix`, `2:38: client.trusted "proxy": want a network in CIDR notation, or an address`,
		`2:45: client.trusted "::ffff:10.0.0.0/104": is IPv4 written as IPv6`,
	}},
	{"by secrets", "secrets: {extra: [pin], except: [token]}\n" + rule("hot: {rate: 1/s}", "by: [pin, token, Api-Key, 'user[password]']"), []string{
		`6:10: by "pin": the parameter looks secret and never leaves the process, so it can make no key`,
		`6:22: by "Api-Key": the parameter looks secret and never leaves the process, so it can make no key`,
		`6:31: by "user[password]": the parameter looks secret and never leaves the process, so it can make no key`,
	}},

	// hot.
	{"hot without rate", rule("hot: {hold: 1s, rte: 1/s}"), []string{"4:10: hot has none of rate, share, jump, top, cost", `4:21: unknown field "rte" in hot`}},
	{"hot as a number", rule("hot: 200"), []string{`4:10: hot "200": want N/D, for example "200/s" or "60/1m"`}},
	{"no thresholds", rule("hot: []"), []string{"4:10: hot: the list is empty"}},
	{"bad thresholds", rule("hot: [200/s, [1/s], ~, 0/s, {rate: 1/s, hold: x}]"), []string{
		"4:18: hot: want fields, found a list", "4:25: hot: want fields, found nothing",
		`4:28: hot "0/s": the count must be a whole number of at least 1, or a fraction such as 0.5`, `4:51: hot.hold "x": want a duration, for example 10s or 1m`,
	}},
	{"many thresholds", rule("hot: [1/1s, 1/2s, 1/3s, 1/4s, 1/5s, 1/6s, 1/7s, 1/8s, 1/9s]"), []string{"4:59: hot: more than 8 thresholds"}},
	{"the same window twice", rule("hot: [200/s, 20%, 8x, {top: 1}, 300/1s, 10%, 3x/1s, {top: 2, window: 1s}]"), []string{
		"4:37: hot: a second rate over 1s", "4:45: hot: a second share over 1s", "4:50: hot: a second jump over 1s", "4:57: hot: a second top over 1s",
	}},
	{"the same past twice", rule("hot: [{jump: 8x, over: day}, 8x, {jump: 3x, over: day}, {jump: 3x/1m, over: day}]"), []string{"4:38: hot: a second jump over day over 1s"}},
	{"bad rate", rule("hot: {rate: 0/s}"), []string{`4:17: hot.rate "0/s": the count must be a whole number of at least 1, or a fraction such as 0.5`}},
	{"high rate", rule("hot: {rate: 20000000/s}"), []string{`4:17: hot.rate "20000000/s": more than 10000000 per second`}},
	{"short window", rule("hot: {rate: 10/500ms}"), []string{`4:17: hot.rate "10/500ms": the window must be 1s to 1h`}},
	{"long window", rule("hot: {rate: 10/2h}"), []string{`4:17: hot.rate "10/2h": the window must be 1s to 1h`}},
	{"exit above, hold bad", rule("hot: {rate: 200/s, exit: 250/s, hold: 10}"), []string{
		`4:30: hot.exit "250/s" is above hot.rate 200/s`, `4:43: hot.hold "10": want a duration, for example 10s or 1m`,
	}},
	{"exit count above", rule("hot: {rate: 200/s, exit: 201, hold: -1s}"), []string{
		`4:30: hot.exit "201" is above hot.rate 200/s`, `4:41: hot.hold "-1s": want a duration, for example 10s or 1m`,
	}},
	{"exit of another window", rule("hot: {rate: 200/s, exit: 160/1m}"), []string{`4:30: hot.exit "160/1m": use the window of hot.rate, 200/s`}},
	{"exit of no share", rule("hot: {rate: 200/s, exit: 120%}"), []string{`4:30: hot.exit "120%": want 1% to 100%`}},
	{"exit of too little", rule("hot: {rate: 200/s, exit: 0.5%}"), []string{`4:30: hot.exit "0.5%": want 1% to 100%`}},
	{"exit of strange digits", rule("hot: {rate: 200/s, exit: 0x10%}"), []string{`4:30: hot.exit "0x10%": want 1% to 100%`}},
	{"exit of no rate", rule("hot: {rate: 200/s, exit: x/s}"), []string{`4:30: hot.exit "x/s": the count must be a whole number of at least 1, or a fraction such as 0.5`}},
	{"exit of nothing", rule("hot: {rate: 200/s, exit: low}"), []string{`4:30: hot.exit "low": want a share, a rate or a whole number of at least 1`}},
	{"exit without rate", rule("hot: {rate: x, exit: 0}"), []string{
		`4:17: hot.rate "x": want N/D, for example "200/s" or "60/1m"`, `4:26: hot.exit "0": want a share, a rate or a whole number of at least 1`,
	}},
	{"two kinds", rule("hot: {share: 20%, rate: 200/s, top: 3, jump: ~}"), []string{
		"4:18: hot.share: the threshold has hot.rate already", "4:41: hot.top: the threshold has hot.rate already", "4:44: hot.jump is empty",
	}},
	{"shares", rule("hot: [0%, 101%, 1.2.3%, {share: 8x}, {share: 200/s}, {share: [1]}, -5%]"), []string{
		`4:11: hot "0%": a share must be above 0% and at most 100%`, `4:15: hot "101%": a share must be above 0% and at most 100%`,
		`4:21: hot "1.2.3%": a share must be above 0% and at most 100%`, `4:37: hot.share "8x": want a percentage`,
		`4:50: hot.share "200/s": want a percentage`, "4:66: hot.share: want text, found a list",
		`4:72: hot "-5%": want N/D, for example "200/s" or "60/1m"`,
	}},
	{"jumps", rule("hot: [1x, 2000000x, .x, {jump: 20%}, {rate: 8x, exit: 5}]"), []string{
		`4:11: hot "1x": a jump must be above 1x and at most 1000000x`, `4:15: hot "2000000x": a jump must be above 1x and at most 1000000x`,
		`4:25: hot ".x": a jump must be above 1x and at most 1000000x`, `4:36: hot.jump "20%": want a multiple`,
		`4:59: hot.exit "5": want a percentage, because the threshold is not a rate`,
	}},
	{"tops", rule("hot: [{top: 0}, {top: 1001}, {top: few}, {top_k: 3}]"), []string{
		`4:17: hot.top "0": want a whole number of 1 to 1000`, `4:27: hot.top "1001": want a whole number of 1 to 1000`,
		`4:40: hot.top "few": want a whole number of 1 to 1000`, "4:46: hot has none of rate, share, jump, top, cost", `4:47: unknown field "top_k" in hot`,
	}},
	{"costs", rule("hot: [{cost: 5}, {cost: auto, min: 1ms, hold: 1s, cool_down: 1s, exit: 50%, window: 1s}, {cost: auto, over: day}]"), []string{
		`4:18: hot.cost "5": want auto`, "4:40: hot.min: a cost has none", "4:51: hot.hold: a cost has none", "4:66: hot.cool_down: a cost has none",
		"4:76: hot.exit: a cost has none", "4:89: hot.window: a cost has none", "4:113: hot.over: the threshold is no jump",
	}},
	{"two costs", rule("hot: [{cost: auto}, {cost: auto}]"), []string{"4:25: hot: a second cost over 1s"}},
	{"a cost of requests", rule("hot: {cost: auto}", "count: requests"), []string{`5:12: count "requests": goes with no hot.cost, which counts the time of requests`}},
	{"a back end without a cost", rule("hot: 200/s", "backend: orders-db"), []string{`5:14: backend "orders-db": goes with hot.cost`}},
	{"a back end that is no name", rule("hot: {cost: auto}", "backend: Orders DB"), []string{`5:14: backend "Orders DB": want at most 64 of a-z, 0-9, _ and -`}},
	{"requests of keys that nothing holds", rule("limit: {concurrency: 8, cancel: true}"), []string{"4:37: limit.cancel: goes with concurrency: auto"}},
	{"a number that nothing finds", rule("hot: 200/s", "limit: {concurrency: auto}"), []string{"5:26: limit.concurrency auto: only a rule with hot.cost finds its number"}},
	{"a number that is no word", rule("hot: {cost: auto}", "limit: {concurrency: automatic}"), []string{`5:26: limit.concurrency "automatic": want a whole number of 1 to 1000000`}},
	{"a number of one instance", rule("hot: {cost: auto}", "limit: {concurrency: auto, scope: instance}"), []string{`5:39: limit.scope "instance": concurrency: auto is over all instances`}},
	{"a number by priority", rule("hot: {cost: auto}", "limit: {concurrency: auto, priority: {by: tier, first: [gold]}}"), []string{
		"5:26: concurrency: auto is over all instances, and scope: fleet with count: ms goes with neither warm_up nor priority",
	}},
	{"a cost by Graphite", "aggregator: {source: graphite}\ngraphite: {url: http://g}\nstatsd: {encoding: strict, meta: false}\n" + rule("hot: {cost: auto}"), []string{
		"1:22: aggregator.source: graphite carries counts alone, not the times that hot.cost needs, of rule r",
	}},
	{"windows of shares", rule("hot: [20%/500ms, 20%/, 8x/2h, {share: 20%, window: 2h}, {top: 3, window: soon}]"), []string{
		`4:11: hot "20%/500ms": the window must be 1s to 1h`,
		`4:22: hot "20%/": the time must be a positive duration, for example s, 10s, 1m, 1h, 1d or 1w`, `4:28: hot "8x/2h": the window must be 1s to 1h`,
		`4:56: hot.window "2h": the window must be 1s to 1h`, `4:78: hot.window "soon": want a duration, for example 10s or 1m`,
	}},
	{"pasts", rule("hot: [{jump: 8x, over: week}, {jump: 8x/1m, over: 1h}, {share: 20%, over: day}, {rate: 5/s, over: day}]"), []string{
		`4:28: hot.over "week": want day`, `4:55: hot.over "1h": want day`, "4:79: hot.over: the threshold is no jump", "4:103: hot.over: the threshold is no jump",
	}},
	{"two windows", rule("hot: [{share: 20%/10s, min: 50/1m}, {jump: 8x, min: 50/10s, window: 1m}, {top: 3/1s}]"), []string{
		`4:33: hot.min "50/1m": the threshold has a window of 10s already`, `4:73: hot.window "1m": the threshold has a window of 10s already`,
		`4:84: hot.top "3/1s": want a whole number of 1 to 1000`,
	}},
	{"least counts", rule("hot: [{share: 20%, min: 0}, {jump: 8x, min: 10/500ms}, {top: 3, min: few/s}, {share: 20%/5s, min: 1.5}]"), []string{
		`4:29: hot.min "0": want a whole number of at least 1, or a rate`, `4:49: hot.min "10/500ms": the window must be 1s to 1h`,
		`4:74: hot.min "few/s": the count must be a whole number of at least 1, or a fraction such as 0.5`, `4:103: hot.min "1.5": want a whole number of at least 1, or a rate`,
	}},
	{"a rate with a least count", rule("hot: {rate: 200/s, min: 50/s, window: 1s}"), []string{
		"4:29: hot.min: a rate has its count and its window itself", "4:43: hot.window: a rate has its count and its window itself",
	}},
	{"cool-down", rule("hot: {rate: 200/s, cool_down: -3s, cooldown: 3s}"), []string{
		`4:35: hot.cool_down "-3s": want a duration, for example 10s or 1m`, `4:40: unknown field "cooldown" in hot`,
	}},

	// count.
	{"count", rule("hot: 10MB/s", "count: byte"), []string{`5:12: count "byte": want requests or bytes or ms or units`}},
	{"count of another kind", rule("hot: 200/s", "count: [ms]"), []string{"5:12: count: want text, found a list"}},
	{"count without effect", rule("count: bytes", "by: [q]", "block: {q: x}"), []string{"4:12: count: the rule has neither hot nor limit, so it counts nothing"}},
	{"sizes and times of requests", rule("hot: {rate: 10MB/s, exit: 500ms/s}", "limit: {rate: 1s/s, burst: 1KiB}"), []string{
		`4:17: hot.rate "10MB/s": the count must be a whole number of at least 1, or a fraction such as 0.5`, `4:31: hot.exit "500ms/s": the count must be a whole number of at least 1, or a fraction such as 0.5`,
		`5:19: limit.rate "1s/s": the count must be a whole number of at least 1, or a fraction such as 0.5`, `5:32: limit.burst "1KiB": want a whole number of at least 1`,
	}},
	{"bytes", rule("count: bytes", "hot: [1.5MB/s, 2TB/s, 20%, {top: 3, min: 1s}]", "limit: {rate: 20MB/s, burst: 1min}"), []string{
		`5:11: hot "1.5MB/s": the count must be a size of at least 1, such as 512KiB, 10MB or 1000`, `5:20: hot "2TB/s": more than 1000000000000 per second`,
		"5:27: hot.min is missing: it has a default only for count: requests", `5:46: hot.min "1s": want a size of at least 1, such as 512KiB, 10MB or 1000, or a rate`,
		`6:19: limit.rate "20MB/s": more than 10000000 per second`, `6:34: limit.burst "1min": want a size of at least 1, such as 512KiB, 10MB or 1000`,
	}},
	{"milliseconds", rule("count: ms", "hot: [100us/s, 8x]", "limit: {rate: 1MB/s}"), []string{
		`5:11: hot "100us/s": the count must be a time of at least 1 ms, such as 500ms, 2s or 500`,
		"5:20: hot.min is missing: it has a default only for count: requests",
		`6:19: limit.rate "1MB/s": the count must be a time of at least 1 ms, such as 500ms, 2s or 500`,
	}},

	// except, allow and block.
	{"except of another kind", rule("hot: 1/s", "except: {values: {q: a}}", "allow: q", "block: [[q], {}]"), []string{
		"5:13: except: want a list, found fields", "6:12: allow: want names with values, found text",
		"7:13: block: want names with values, found a list", "7:18: block: there are no values",
	}},
	{"exceptions", rule("hot: 1/s", "except:", "  - a", "  - {}", "  - {values: {}, action: alow}", "  - {values: {q: ~, '': a, r: [], s: [[a]]}, action: allow, limit: 5/s, hot: 5/s, vlaues: {}}"), []string{
		"6:9: an exception: want fields, found text",
		"7:9: except.values is missing", "7:9: the exception has neither action nor hot nor limit: it changes nothing",
		"8:18: except.values: there are no values", `8:30: except.action "alow": want allow or block`,
		`9:19: except.values "q" has no value`, `9:25: except.values "": the name is empty`, `9:32: except.values "r" has no value`,
		`9:43: except.values "s": want text, found a list`, "9:72: except.limit: allowed and blocked requests are neither counted nor limited",
		"9:82: except.hot: allowed and blocked requests are neither counted nor limited",
		`9:87: unknown field "vlaues" in an exception`,
	}},
	{"rates of exceptions", rule("hot: [200/s, 5000/1m, 20%/10s]", "except:", "  - {values: {q: a}, hot: 1000/10s}", "  - {values: {q: a}, hot: 20%}", "  - {values: {q: a}, hot: {rate: 1/s}}"), []string{
		`6:31: except.hot "1000/10s": the rule has no rate over that window`, `7:31: except.hot "20%": want N/D, for example "200/s" or "60/1m"`,
		"8:31: except.hot: want text, found fields",
	}},
	{"names of exceptions", rule("hot: 1/s", "by: [query, path:id]", "allow: {qury: a, id: b, 'path:sku': c, 'a:b': d}"), []string{
		`6:13: allow "qury": by does not have the parameter`, `6:22: allow "id": by does not have the parameter`,
		`6:29: allow "path:sku": by does not have the parameter`, `6:44: allow "a:b": unknown source "a"`,
	}},
	{"names of any by", rule("hot: 1/s", "block: {token: a, id: b, 'path:sku': c, 'header:x': d}"), []string{
		`5:13: block "token": the parameter looks secret and never leaves the process, so it can make no key`,
		`5:23: block "id": the route has a wildcard {id}, but a bare name is one of the query`,
		`5:30: block "path:sku": the route has no wildcard {sku}`, `5:45: block "header:x": keys of all parameters have those of the query and the path alone`,
	}},
	{"values that no key has", rule("hot: 1/s", "by: each", "allow: {q: a, page: b}"), []string{"6:12: allow: a key of by: each has one parameter, not 2"}},
	{"values of too many", rule("hot: 1/s", "by: combinations", "allow: [{a: 1, b: 1, c: 1, d: 1}]"), []string{"6:13: allow: a key combines at most 3 parameters, not 4"}},
	{"exceptions without by", rule("limit: 1/s", "allow: {q: a}"), []string{"5:12: allow: the rule has no by, so it makes no keys that could have values"}},
	{"exceptions of a bad by", rule("limit: 1/s", "by: [q, 'x:y']", "allow: {r: a}"), []string{`5:13: by "x:y": unknown source "x"`}},
	{"exceptions that do nothing", rule("by: [q]", "allow: {q: a}"), []string{"2:5: the rule has neither hot nor limit, and none of its exceptions blocks: it does nothing"}},
	{"an empty list of exceptions", rule("by: [q]", "block: []"), []string{"2:5: the rule has neither hot nor limit: it does nothing"}},
	{"combinations of values", rule("hot: 1/s", "allow: {q: ["+strings.Repeat("a,", 40)+"], r: ["+strings.Repeat("a,", 40)+"]}"), []string{"5:100: allow: over 1000 combinations of values"}},
	{"many exceptions", rule("hot: 1/s", "allow: {q: ["+strings.Repeat("a,", 600)+"]}", "block: {q: ["+strings.Repeat("a,", 600)+"]}"), []string{
		"5:12: 1200 exceptions: a rule has at most 1000, since each key is compared with them",
	}},

	// limit.
	{"limit as a word", rule("limit: fast"), []string{`4:12: limit "fast": want N/D, for example "200/s" or "60/1m"`}},
	{"limit as a list", rule("limit: [1/s]"), []string{"4:12: limit: want fields, found a list"}},
	{"limit without rate", rule("limit: {burst: 1}"), []string{"4:12: limit.rate is missing"}},
	{"limit rate and burst", rule("limit: {rate: fast, burst: 0}"), []string{
		`4:19: limit.rate "fast": want N/D, for example "200/s" or "60/1m"`, `4:32: limit.burst "0": want a whole number of at least 1`,
	}},
	{"burst of words", rule("limit: {rate: 1/s, burst: 1.5}"), []string{`4:31: limit.burst "1.5": want a whole number of at least 1`}},
	{"bucket that never fills", rule("limit: {rate: 1/1h, burst: 1000000}"), []string{
		"4:32: limit.burst 1000000: a bucket of so many tokens takes over 73 years to fill at 1/1h",
	}},
	{"rate that never fills", rule("limit: {rate: 1/30000d}"), []string{"4:19: limit.burst 1: a bucket of so many tokens takes over 73 years to fill at 1/30000d"}},
	{"unknown scope", rule("limit: {rate: 1/s, scope: cluster}"), []string{
		`4:31: limit.scope "cluster": want instance or share or fleet or exact`,
	}},
	{"limits that say nothing", rule("limit: {burst: x, initial: y, concurrency: 0, queue: 1.5, warm_up: 1, cold_factor: 1, blocks: 1001, penalty: 0s}"), []string{
		`4:20: limit.burst "x": want a whole number of at least 1`, `4:32: limit.initial "y": want 0 or a whole number of at least 1`,
		`4:48: limit.concurrency "0": want a whole number of 1 to 1000000`, `4:58: limit.queue "1.5": want a whole number of 1 to 1000000`,
		`4:72: limit.warm_up "1": want a duration, for example 10s or 1m`, `4:88: limit.cold_factor "1": want a number above 1, at most 1000`,
		`4:99: limit.blocks "1001": want a whole number of 1 to 1000`, `4:114: limit.penalty "0s": want 1ms to 8784h0m0s`,
	}},
	{"words of limits", rule("limit: {rate: 1/s, shape: maybe, calendar: fortnight, count_denied: 1, when_redis_is_away: maybe, wait: soon, priority: 1, serve: ok}"), []string{
		`4:31: limit.shape "maybe": want true or false`, `4:48: limit.calendar "fortnight": want second or minute or hour or day or week or month or year`,
		`4:73: limit.count_denied "1": want true or false`, `4:96: limit.when_redis_is_away "maybe": want local or open or closed`,
		`4:109: limit.wait "soon": want a duration, for example 10s or 1m`, "4:125: limit.priority: want fields, found text", "4:135: limit.serve: want fields, found text",
	}},
	{"a burst for a window", rule("limit: {rate: 1/s, burst: 5, algorithm: sliding_log}"), []string{"4:31: limit.burst 5: sliding_log has no burst but the rate's count, 1"}},
	{"more than a log remembers", rule("limit: {rate: 200000/1m, algorithm: sliding_log}"), []string{`4:19: limit.rate "200000/1m": a sliding log remembers each permit, at most 100000`}},
	{"initial above the burst", rule("limit: {rate: 5/s, initial: 6}"), []string{"4:33: limit.initial 6: must be 0 to the burst, 5"}},
	{"shape without a wait", rule("limit: {rate: 5/s, algorithm: leaky_bucket, shape: true}"), []string{"4:56: limit.shape: needs wait: shaped requests wait for their turn"}},
	{"shape of a bucket", rule("limit: {rate: 5/s, shape: true, wait: 1s}"), []string{"4:31: limit.shape: only leaky_bucket has it, not token_bucket"}},
	{"calendar and period", rule("limit: {rate: 5/s, algorithm: fixed_window, calendar: day}"), []string{`4:59: limit.calendar "day": the rate is over 1s, want 24h0m0s`}},
	{"zone", rule("limit: {rate: 5/1d, algorithm: fixed_window, calendar: day, zone: Mars/Olympus}"), []string{`4:71: limit.zone "Mars/Olympus": unknown time zone Mars/Olympus`}},
	{"wait with a shadow", rule("limit: {rate: 5/s, on_limit: shadow, wait: 1s}"), []string{"4:48: limit.wait 1s: goes with on_limit: wait, which needs it"}},
	{"wait without a time", rule("limit: {rate: 5/s, on_limit: wait}"), []string{"4:19: limit.wait 0s: goes with on_limit: wait, which needs it"}},
	{"wait for a cost", rule("count: bytes", "limit: {rate: 5/s, wait: 1s}"), []string{"5:30: limit.wait: goes with count: requests; the cost of a request is known at its end"}},
	{"a queue without a wait", rule("limit: {concurrency: 5, queue: 7}"), []string{"4:36: limit.queue: goes with concurrency and wait"}},
	{"away without Redis", rule("limit: {rate: 5/s, when_redis_is_away: open}"), []string{"4:44: limit.when_redis_is_away: goes with scope: fleet or exact"}},
	{"serve and reject", rule("limit: {rate: 5/s, on_limit: reject, serve: {body: a}}"), []string{"4:49: limit.serve: goes with on_limit: serve"}},
	{"priority and serve", rule("limit: {rate: 5/s, priority: {first: gold, x: 1}, serve: {status: 99, type: json, body: [a]}}"), []string{
		"4:34: limit.priority.by is missing", "4:42: limit.priority.first: want a list, found text", `4:48: unknown field "x" in limit.priority`,
		`4:71: limit.serve.status "99": want 200 to 599`, `4:81: limit.serve.type "json": want a media type`, "4:93: limit.serve.body: want text, found a list",
	}},
	{"nobody first", rule("limit: {rate: 5/s, priority: {by: tier, first: []}}"), []string{"4:34: limit.priority: wants a parameter and 1 to 9 of its values"}},
	{"misspelt", rule("limit: {rate: 1/s, scope: instnace, on_limit: drop, algorithm: [x]}"), []string{
		`4:31: limit.scope "instnace": want instance or share or fleet or exact`, `4:51: limit.on_limit "drop": want reject or wait or serve or shadow`, "4:68: limit.algorithm: want text, found a list",
	}},

	// Transports.
	{"transports", good + "statsd: [a:1]\nkafka: a:9092\n", []string{"2:9: statsd: want fields, found a list", "3:8: kafka: want fields, found text"}},
	{"addresses", good + "statsd:\n  addresses: ['a:1', a, ':1', 'a:1', [b]]\n  spread: rendezvous\n", []string{
		`3:22: statsd.addresses "a": want host:port, tcp://host:port, unix:///path or unixstream:///path`, `3:25: statsd.addresses ":1": the host is missing`,
		`3:31: statsd.addresses: "a:1" is there twice, first in line 3`, "3:38: statsd.addresses: want text, found a list",
		`4:11: statsd.spread "rendezvous": want hash or all`,
	}},
	{"no addresses", good + "statsd: {addresses: []}\nkafka: {brokers: k:9092}\n", []string{
		"2:21: statsd.addresses: want 1 to 64 addresses, found 0", "3:18: kafka.brokers: want a list, found text",
	}},
	{"kafka", good + "kafka:\n  brokers: [k]\n  topic: a b\n  client_id: ..\n  version: new\n  tls: maybe\n  sasl: {}\n  timeout: 1h\n  acks: 2\n  idempotent: 1\n  compression: gzip\n  buffer: 1\n  group: ''\n  session: 10\n  sesion: 1s\n", []string{
		`3:13: kafka.brokers "k": want host:port`, `4:10: kafka.topic "a b": want 1 to 249 of A-Z a-z 0-9 . _ -`,
		`5:14: kafka.client_id "..": want 1 to 249 of A-Z a-z 0-9 . _ -`, `6:12: kafka.version "new": want a Kafka release, for example "3.6"`,
		`7:8: kafka.tls "maybe": want true or false`,
		"8:9: kafka.sasl.mechanism is missing", "8:9: kafka.sasl.user is missing", "8:9: kafka.sasl has neither password_file nor password_env",
		`9:12: kafka.timeout "1h": want 100ms to 1m0s`, `10:9: kafka.acks "2": want 1 or all`, `11:15: kafka.idempotent "1": want true or false`,
		`12:16: kafka.compression "gzip": want zstd or lz4 or none`, `13:11: kafka.buffer "1": want a size of at least 1MiB, for example 64MB or 256MiB`,
		`14:10: kafka.group "": want 1 to 249 of A-Z a-z 0-9 . _ -`, `15:12: kafka.session "10": want a duration, for example 10s or 1m`,
		`16:3: unknown field "sesion" in kafka`,
	}},
	{"idempotent", good + "kafka: {brokers: ['k:1'], acks: 1, idempotent: true}\n", []string{"2:48: kafka.idempotent needs acks: all"}},
	{"kafka.tls", good + "kafka: {brokers: ['k:1'], tls: {cert: c.pem, insecure: true, ca: x, cname: y}}\n", []string{
		"2:39: kafka.tls.cert is there without key", "2:56: kafka.tls.insecure takes any certificate, so ca has no effect", `2:69: unknown field "cname" in kafka.tls`,
	}},
	{"kafka.sasl", good + "kafka:\n  sasl: {mechanism: SCRAM-SHA-1, user: '', password_env: a b, password_file: f}\n", []string{
		`3:21: kafka.sasl.mechanism "scram-sha-1": want plain or scram-sha-256 or scram-sha-512`, "3:40: kafka.sasl.user is empty",
		"3:58: kafka.sasl.password_env is no name of a variable", "3:58: kafka.sasl.password_file and password_env are both there",
	}},
	{"passwords", good + "kafka:\n  sasl: {mechanism: plain, user: u, password: p}\naggregator:\n  redis: {password: p, sentinel_password: p}\n", []string{
		"3:9: kafka.sasl has neither password_file nor password_env", "3:37: kafka.sasl.password: a password does not belong in this file",
		"5:11: aggregator.redis.password: a password does not belong in this file", "5:24: aggregator.redis.sentinel_password: a password does not belong in this file",
	}},
	{"redis", good + "aggregator:\n  redis: {url: 'http://:geheim@h', key: k.pem, username: '', cluster: true}\n", []string{
		"3:16: aggregator.redis.url: want a URL that begins with redis://, rediss:// or unix://", "3:41: aggregator.redis.key is there without cert",
		"3:58: aggregator.redis.username is empty", `3:62: unknown field "cluster" in aggregator.redis`,
	}},
	{"aggregator", good + "aggregator: {source: udp, name: a b, lease: maybe, redis: [a]}\n", []string{
		`2:22: aggregator.source "udp": want statsd or kafka or graphite or none`, `2:33: aggregator.name "a b": want 1 to 64 of A-Z a-z 0-9 . _ -`,
		`2:45: aggregator.lease "maybe": want true or false`, "2:59: aggregator.redis: want fields, found a list",
	}},
	{"held for too long", good + "aggregator: {hold_when_away: 61m}\n", []string{`2:30: aggregator.hold_when_away "61m": want at most 1h0m0s`}},
	{"held for never", good + "aggregator: {hold_when_away: -1m}\n", []string{`2:30: aggregator.hold_when_away "-1m": want a duration, for example 10s or 1m`}},
	{"hot with no source", "aggregator: {source: none}\nrules:\n  - {id: a, match: {route: '*'}, limit: 1/s}\n  - {id: b, match: {route: '*'}, hot: 20/s, limit: 1/s}\n  - {id: c, match: {route: '*'}, hot: [{rate: 1/s}]}\n", []string{
		"4:39: hot: aggregator.source: none disables counting, so no key becomes hot",
		"5:39: hot: aggregator.source: none disables counting, so no key becomes hot",
	}},
	{"lease with kafka", good + "aggregator: {lease: true, source: kafka}\n", []string{
		"2:21: aggregator.lease: with source: kafka each partition has one owner already",
	}},
	{"lease with a name", good + "aggregator: {lease: true, name: a}\n", []string{
		"2:21: aggregator.lease: aggregators with names each get a part of the keys; aggregators with a lease each get all keys",
	}},
	{"lease with hash", good + "aggregator:\n  lease: true\nstatsd: {addresses: ['a:1', 'b:1']}\n", []string{
		"3:10: aggregator.lease: with spread: hash each aggregator gets a part of the keys, and the one with the lease would publish only its part",
	}},
	{"all without lease", good + "statsd: {addresses: ['a:1', 'b:1'], spread: all}\n", []string{
		"2:45: statsd.spread: with all, each aggregator would publish everything, in conflict with the others",
	}},
	{"listen", good + "aggregator:\n  listen: [':1', 'udp://:1', 'unix://run/a', {a: 1}, 'tcp://:']\n  readers: 0\n", []string{
		`3:18: aggregator.listen: ":1" is there twice, first in line 3`,
		`3:30: aggregator.listen "unix://run/a": want host:port, tcp://host:port, unix:///path or unixstream:///path`,
		"3:46: aggregator.listen: want text, found fields",
		`3:54: aggregator.listen "tcp://:": want host:port, tcp://host:port, unix:///path or unixstream:///path`,
		`4:12: aggregator.readers "0": want 1 to 64`,
	}},
	{"canonical is yes or no", good + "aggregator: {canonical: maybe}\n", []string{`2:25: aggregator.canonical "maybe": want true or false`}},
	{"the page", good + "aggregator:\n  page: onn\n  page_token: geheim\n  page_token_file: a\n  page_token_env: b-c\n  page_hosts: ['*.example', 'http://a', 'a:80', '']\n", []string{
		`3:9: aggregator.page "onn": want on or off`, "4:3: aggregator.page_token: a token does not belong in this file",
		"6:19: aggregator.page_token_env is no name of a variable", "6:19: aggregator.page_token_file and page_token_env are both there",
		`7:16: aggregator.page_hosts "*.example": patterns are not allowed`, `7:29: aggregator.page_hosts "http://a": want a name or an address, without scheme and port`,
		`7:41: aggregator.page_hosts "a:80": want a name or an address, without scheme and port`, `7:49: aggregator.page_hosts "": want a name or an address, without scheme and port`,
	}},
	{"no hosts of the page", good + "aggregator: {page_hosts: []}\n", []string{"2:26: aggregator.page_hosts: want 1 to 32 names, found 0"}},
	{"trust", good + "aggregator:\n  trust: signd\n  senders: [10.0.0.0/8]\n  key_file: a\n  key_env: b-c\n  key: secret\n  caps: {counts: 0, keys: many, name: 3, new_names: [1]}\n", []string{
		`3:10: aggregator.trust "signd": want all or listed or signed`, "4:12: aggregator.senders has no effect: only trust: listed checks addresses",
		"6:12: aggregator.key_env is no name of a variable", "6:12: aggregator.key_file and key_env are both there",
		"7:3: aggregator.key: a key does not belong in this file",
		`8:18: aggregator.caps.counts "0": want 1 to 1125899906842624, or none`, `8:27: aggregator.caps.keys "many": want 1 to 16777216, or none`,
		`8:33: unknown field "name" in aggregator.caps`, "8:53: aggregator.caps.new_names: want text, found a list",
	}},
	{"signed without a key", good + "aggregator: {trust: signed}\n", []string{"2:21: aggregator.trust: signed needs a key"}},
	{"listed without senders", good + "aggregator: {trust: listed}\n", []string{"2:21: aggregator.trust: listed without senders believes no sender"}},
	{"senders", good + "aggregator:\n  trust: listed\n  senders: [10.0.0.0/33, 10.0.0.1/8, '::ffff:10.0.0.0/104', host, 'fe80::1%eth0']\n", []string{
		`4:13: aggregator.senders "10.0.0.0/33": want a network in CIDR notation, or an address`, `4:26: aggregator.senders "10.0.0.1/8": has bits behind its prefix`,
		`4:38: aggregator.senders "::ffff:10.0.0.0/104": is IPv4 written as IPv6`, `4:61: aggregator.senders "host": want a network in CIDR notation, or an address`, `4:67: aggregator.senders "fe80::1%eth0": want a network in CIDR notation, or an address`,
	}},
	{"no senders", good + "aggregator: {trust: listed, senders: []}\n", []string{"2:38: aggregator.senders: want 1 to 256 networks, found 0"}},
	{"listed for Unix sockets", good + "aggregator: {trust: listed, senders: [10.0.0.0/8], listen: 'unix:///run/a.sock'}\n", []string{"2:21: aggregator.trust: listed checks addresses, but listen has only Unix sockets"}},
	{"listed with kafka", good + "aggregator: {trust: listed, senders: [10.0.0.0/8], source: kafka}\n", []string{"2:21: aggregator.trust: with source: kafka a record does not have its sender's address"}},
	{"signed with graphite", good + "aggregator: {trust: signed, key_env: K, source: graphite}\n", []string{"2:21: aggregator.trust: with source: graphite there are no packets, and the data in Graphite is not signed"}},
	{"signed without meta lines", good + "aggregator: {key_env: K}\nstatsd: {meta: false}\n", []string{"2:23: aggregator.key_env: a signature is in the meta line, and statsd.meta is false"}},
	{"nothing to listen on", good + "aggregator: {listen: [], readers: many}\n", []string{
		"2:22: aggregator.listen: want 1 to 64 addresses, found 0", `2:35: aggregator.readers "many": want 1 to 64`,
	}},
	{"readers of no port", good + "aggregator: {listen: 'tcp://:1', readers: 2}\n", []string{"2:43: aggregator.readers: readers share a UDP address, and listen has none"}},
	{"statsd", good + "statsd: {addresses: ['tcp://:1', 'unix:///a', 'unixgram:///a'], encoding: base64, meta: never}\n", []string{
		`2:22: statsd.addresses "tcp://:1": the host is missing`, `2:47: statsd.addresses: "unix:///a" is there twice, first in line 2`,
		`2:75: statsd.encoding "base64": want plain or strict`, `2:89: statsd.meta "never": want true or false`,
	}},
	{"graphite", good + "graphite:\n  url: graphite\n  every: '@every 1'\n  offset: 0s\n  series: stats_counts\n  rate: 1\n  heartbeat: 'a b'\n  step: 1500ms\n  timeout: 2m\n  user: u\n  token: t\n  tls: true\n", []string{
		"3:8: graphite.url: want a URL that begins with http:// or https://", `4:10: graphite.every "@every 1": failed to parse duration @every 1: time: missing unit in duration "1"`,
		`5:11: graphite.offset "0s": want 1ms to 30s`, `6:11: graphite.series "stats_counts": want {name} in it, once, for the counter's name`,
		`7:9: graphite.rate "1": want true or false`, `8:14: graphite.heartbeat "a b": want words of A-Z a-z 0-9 _ - with dots between`,
		"9:9: graphite.step 1.5s: want whole seconds", `10:12: graphite.timeout "2m": want 100ms to 1m0s`,
		"11:9: graphite.user is there without a password", "12:3: graphite.token: a token does not belong in this file",
		"13:8: graphite.tls: want fields, found text",
	}},
	{"graphite series", good + "graphite: {series: 'a.{name}.{name}', heartbeat: 'a.{name}'}\n", []string{
		`2:20: graphite.series "a.{name}.{name}": want {name} in it, once, for the counter's name`, `2:50: graphite.heartbeat "a.{name}": it is one series, and has no {name}`,
	}},
	{"graphite series of braces", good + "graphite: {series: 'a..{name}', heartbeat: 'a.{b}'}\n", []string{
		`2:20: graphite.series "a..{name}": want words of A-Z a-z 0-9 _ - with dots between`, `2:44: graphite.heartbeat "a.{b}": want words of A-Z a-z 0-9 _ - with dots between`,
	}},
	{"graphite who", good + "graphite: {user: u, password_env: P, token_env: T, url: 'http://u:p@h'}\n", []string{
		"2:49: graphite: a token and a user are both there", "2:57: graphite.url: a user and a password do not belong in it",
	}},
	{"graphite password", good + "graphite: {password_env: P, url: 'http://h/?a'}\n", []string{
		"2:26: graphite: a password is there without user", "2:34: graphite.url: want the base URL, without /render, ? and #",
	}},
	{"graphite tls", good + "graphite: {tls: {cert: c}, url: 'http://h'}\n", []string{
		"2:17: graphite.tls: the url asks for no TLS", "2:24: graphite.tls.cert is there without key",
	}},
	{"schedules", good + "graphite: {every: 'TZ=Europe/Berlin'}\n", []string{`2:19: graphite.every "TZ=Europe/Berlin": a job that runs all day takes no time zone`}},
	{"too often", good + "graphite: {every: '@every 200ms'}\n", []string{`2:19: graphite.every "@every 200ms": want at least 1s`}},
	{"graphite by all", good + "aggregator: {source: graphite, lease: true}\nstatsd: {addresses: ['a:1', 'b:1'], spread: all, encoding: plain, meta: true}\n", []string{
		"3:45: statsd.spread: with all, several StatsD servers would write the same series to Graphite and overwrite each other's points",
		"3:60: statsd.encoding: with source: graphite keys pass StatsD and Graphite, which would split plain ones",
		"3:73: statsd.meta: with source: graphite meta lines are not read",
	}},
	{"graphite windows", "aggregator: {source: graphite}\nrules:\n  - {id: a, match: {route: '*'}, hot: [1/s, 1500/1500ms]}\n  - {id: b, match: {route: '*'}, hot: 20%/2500ms}\n", []string{
		"1:22: graphite.step: each window must be a whole multiple of 1s, because counts come in such steps; these are not: 1.5s of rule a, 2.5s of rule b",
	}},
	{"graphite step", "aggregator: {source: graphite}\ngraphite: {step: 10s}\nrules:\n  - {id: a, match: {route: '*'}, hot: [1/s, 100/1m]}\n", []string{
		"2:18: graphite.step: each window must be a whole multiple of 10s, because counts come in such steps; these are not: 1s of rule a",
	}},

	// prefix and key.
	{"prefix", rule("hot: {rate: 1/s}", "prefix: a..b"), []string{`5:13: prefix "a..b": want parts of A-Z a-z 0-9 _ - with dots between, 129 bytes at most`}},
	{"prefix without hot", rule("limit: {rate: 1/s}", "prefix: a"), []string{"5:13: prefix: the rule has no hot"}},
	{"prefix with the marker", rule("hot: {rate: 1/s}", "prefix: a.hot_param"), []string{`5:13: prefix "a.hot_param": "hot_param" is between a prefix and its key`}},
	{"id as the marker", "rules:\n  - {id: hot_param, match: {route: '*'}, hot: {rate: 1/s}}\n", []string{
		`2:10: prefix "hotparam.hot_param": "hot_param" is between a prefix and its key`,
	}},
	{"same prefix", "rules:\n  - {id: a, match: {route: '*'}, hot: {rate: 1/s}, prefix: x.y}\n  - {id: b, match: {route: '*'}, hot: {rate: 1/s}, prefix: x.y}\n", []string{
		`3:60: the rule in line 2 also has prefix "x.y": their counts could not be distinguished`,
	}},
	{"default prefix taken", "namespace: shop\nrules:\n  - {id: a, match: {route: '*'}, hot: {rate: 1/s}, prefix: shop.b}\n  - {id: b, match: {route: '*'}, hot: {rate: 1/s}}\n", []string{
		`4:10: the rule in line 3 also has prefix "shop.b": their counts could not be distinguished`,
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

// These hints say more than their message, so that the reader knows at once what to do.
func TestHints(t *testing.T) {
	for _, test := range []struct{ source, want string }{
		{"a: {route: *}\n", `write the value in place of the alias; if you mean the text *, put it in quotes: "*"`},
		{"m: {route: GET /u/{id}}\n", `close every bracket, and put text that holds { } [ ] or , in quotes, as in route: "GET /u/{id}"`},
		{"a: {path:id: 7}\n", `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`},
		{"a:\n\t- b\n", "use spaces here, not tabs"},
		{"a: {b: 1,\tc: 2}\n", "use spaces here, not tabs"},
		{"a: @b\n", "put the text in quotes"},
		{"a: 'b\n", "close the quotes"},
		{"a: b: c\n", `check the indentation, and put text that holds ": " or " #" in quotes`},
		{rule("limits: {rate: 1/s}", "action: ignore"), `did you mean "limit"?`},
		{rule("limit: {rate: 1/s, scope: instanse}"), `did you mean "instance"?`},
		{rule("limit: {rate: 1/s, scope: cluster}"), `did you mean "fleet"?`},
		{rule("limit: {rate: 1/1d, algorithm: fixed_window, calendar: week}"), "for example {algorithm: fixed_window, rate: 1000/1d, calendar: day}; a month is 30d, a year 365d"},
		{rule("hot: {rate: 1/s}", "by: [token]"), "if it holds no secret, add its name to secrets.except in the rules file; if it does, add it to secrets.redact: then its keys have a hash of the value"},
		{rule("hot: {rate: 1/s}", "by: [id]"), "write path:id for the wildcard, query:id for the query"},
		{rule("hot: {rate: 1/s}", "by: q"), "by: all, by: each, by: combinations, or names in a list as in by: [q, path:id]"},
		{rule("hot: 1/s", "by: combination"), `did you mean "combinations"?`},
		{rule("by: combinations", "limit: 1/s"), "add hot, or write by: each, which limits as tightly: a combination is never more frequent than its parts"},
		{rule("hot: {rate: 20%, cooldown: 3s}"), `did you mean "cool_down"?`},
		{rule("hot: {share: 20%, jump: 8x}"), "if each of several makes a key hot, write a list: hot: [{rate: 200/s}, {share: 20%, min: 50/s}]"},
		{rule("hot: 10MB/s"), "sizes are for rules that say count: bytes"},
		{rule("hot: 500ms/s"), "times are for rules that say count: ms"},
		{rule("hot: 0/s"), "200/s is 200 within a second, 60/1m is 60 within a minute"},
		{rule("hot: 120%"), "20% is a fifth of the route's count, 20%/1m the same within a minute"},
		{rule("hot: 1x"), "8x is eight times what the key had before, 8x/1m the same within a minute"},
		{rule("hot: 20%", "count: bytes"), "min is the count below which no key is hot, for example min: 1MB/s"},
		{rule("hot: 200/s", "count: byte"), `did you mean "bytes"?`},
		{rule("hot: [200/s, 5000/1m]", "except: [{values: {q: a}, hot: 9/1h}]"), "the rule has 200/s and 5000/1m: give a count over the same window"},
		{rule("hot: 20%", "except: [{values: {q: a}, hot: 9/s}]"), "an exception takes the place of a rate such as hot: 200/s, and the rule has none"},
		{rule("hot: 1/s", "by: [path:id, query]", "allow: {id: a}"), `did you mean "path:id"?`},
		{rule("hot: 1/s", "by: [path:id, query]", "allow: {qeury: a}"), `did you mean "query"?`},
		{rule("hot: 1/s", "by: [path:id, query]", "allow: {page: a}"), "by has path:id, query"},
		{rule("limit: 1/s", "allow: {page: a}"), "add by: [page]"},
		{good + "kafka: {brkers: ['a:1']}\n", `did you mean "brokers"?`},
		{good + "kafka: {sasl: {password: geheim}}\n", "for example sasl: {mechanism: scram-sha-512, user: hotparam, password_file: kafka.password}"},
		{good + "aggregator: {redis: {password: geheim}}\n", "this file is shared and kept in version control: name a file that holds the password in password_file, or a variable in password_env"},
		{good + "graphite: {token: geheim}\n", "this file is shared and kept in version control: name a file that holds the token in token_file, or a variable in token_env"},
		{good + "aggregator: {redis: {tls: true}}\n", "known are url, username, password_file, password_env, sentinel_username, sentinel_password_file, sentinel_password_env, ca, cert, key, server_name, insecure"},
	} {
		if got := problemsOf(t, test.source)[0].Hint; got != test.want {
			t.Errorf("%q:\ngot  %s\nwant %s", test.source, got, test.want)
		}
	}
}
