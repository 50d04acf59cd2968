package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// schemaID is the $id of [Schema].
const schemaID = "https://hotparam.dev/schema/hotparam.json"

// Schema returns the JSON schema (draft 2020-12) of a rules file, for editors. It is made of
// the same tables of settings, sections and words that the parser reads files by, so a field that the
// parser knows is in it. Reflection over the types that a file becomes, as
// github.com/invopop/jsonschema has it, was rejected: they are what a file means, and not how
// it is written ("200/s" becomes a Threshold).
//
// What it accepts may still be refused by [Parse], which knows more: what fields mean together,
// and bounds of numbers with units. What it refuses, Parse refuses.
func Schema() map[string]any {
	s := topSection.schema(schemaTop(), "rules")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "hotparam.yaml"
	s["description"] = "Rules and settings of hotparam"
	s["$defs"] = map[string]any{
		"rule":      ruleSection.schema(schemaRule(), "id", "match"),
		"limit":     scalarOr(schemaRate, limitSection.schema(schemaLimit())),
		"threshold": scalarOr(schemaTerms, hotSection.schema(schemaHot())),
		"tls":       settingsOf(new(kafka.TLS)).schema(),
	}
	return s
}

// schema is a part of a JSON schema.
type schema = map[string]any

// schemas are those of a section's fields, by name.
type schemas map[string]schema

// schema returns that of a section. A field without one of its own may have any value.
func (s section) schema(of schemas, required ...string) schema {
	properties := make(schema, len(s.fields))
	for _, field := range s.fields {
		if properties[field] = of[field]; of[field] == nil {
			properties[field] = schema{}
		}
	}
	object := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		object["required"] = required
	}
	return object
}

// doc returns the schema with a description, which editors show.
func doc(s schema, description string) schema {
	s = maps.Clone(s)
	s["description"] = description
	return s
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

// Every scalar is read as its text, so numbers and booleans are text, too.

func schemaText() schema { return schema{"type": []string{"string", "number", "boolean"}} }

// schemaWord is text that is not empty.
func schemaWord() schema {
	s := schemaText()
	s["minLength"] = 1
	return s
}

// schemaForm is text of a form. A number and a boolean are of none, and left to the parser.
func schemaForm(pattern string) schema {
	s := schemaText()
	s["pattern"] = pattern
	return s
}

func schemaChoice(words ...string) schema { return schema{"enum": words} }

func schemaFlag() schema { return schema{"enum": []any{true, false, "true", "false"}} }

func schemaWhole(least, most int64) schema {
	return schema{"type": []string{"integer", "string"}, "minimum": least, "maximum": most, "pattern": `^\s*[+]?[0-9]+\s*$`}
}

func schemaDuration() schema {
	return schema{"type": []string{"string", "integer"}, "pattern": `^\s*[+-]?(0|([0-9]*\.?[0-9]*(ns|us|µs|μs|ms|s|m|h|d|w))+)\s*$`, "minimum": 0, "maximum": 0}
}

func schemaSize() schema {
	return schema{"type": []string{"number", "string"}, "minimum": 1}
}

func schemaList(of schema) schema { return schema{"type": "array", "items": of} }

func schemaSome(of schema) schema { return schema{"type": "array", "items": of, "minItems": 1} }

// schemaNames is names with one value or several, as in except.values.
func schemaNames(value schema) schema {
	return schema{"type": "object", "additionalProperties": value, "minProperties": 1}
}

func oneOrMore(of schema) schema { return schema{"anyOf": []schema{of, schemaSome(of)}} }

func scalarOr(scalar func() schema, object schema) schema {
	return schema{"anyOf": []schema{scalar(), object}}
}

// schemaRate is a count, a slash and a time: "200/s", "10MB/1m", "30s/1m".
func schemaRate() schema { return schema{"type": "string", "pattern": `^[^/]+/[^/]+$`} }

// schemaTerms is a rate, or what a count is compared with: "20%", "8x/1m".
func schemaTerms() schema {
	return schema{"type": "string", "pattern": `^([^/]+/[^/]+|\s*[0-9.]+\s*[%xX]\s*)$`}
}

func schemaTop() schemas {
	return schemas{
		"namespace":  doc(schemaForm(`^[A-Za-z0-9_-]{1,64}$`), "Keeps the fleets of one Redis apart. Default: "+DefaultNamespace),
		"evaluate":   doc(schemaChoice("all", "first"), "Whether all rules that match a request apply, or only the first. Default: all"),
		"no_match":   doc(schemaChoice("allow", "deny"), "What happens to requests that no rule matches. Default: allow"),
		"secrets":    doc(new(secretSettings).settings().schema(), "Which parameters never leave the process"),
		"client":     doc(clientSettings(new(rules.Client)).schema(), "Whose address is the client's, for rules by addr:"),
		"bodies":     doc(bodiesSettings(new(rules.Bodies)).schema(), "How much of request bodies is read"),
		"instances":  doc(schemaWhole(1, maxInstances), "How many instances share limits, until Redis says it"),
		"max_keys":   doc(schemaWhole(1, rules.MaxLimitKeys), "How many keys each limit has places for in a process. Default: 65536"),
		"aggregator": doc(new(Aggregator).settings().schema(), "The daemon"),
		"statsd":     doc(new(StatsD).settings().schema(), "How instances send counts as StatsD lines"),
		"kafka":      doc(new(Kafka).settings().schema(), "Counts by Kafka"),
		"graphite":   doc(new(Graphite).settings().schema(), "Counts from Graphite"),
		"webhook":    doc(new(Webhook).settings().schema(), "Posts events to a URL"),
		"guard":      doc(new(Guard).settings().schema(), "The guard as a service, for gateways and programs in any language"),
		"rules":      doc(schemaSome(ref("rule")), "Which requests count, when a key is hot, and what happens then"),
	}
}

func schemaRule() schemas {
	names := schemaSome(schemaWord())
	values := schemaNames(oneOrMore(schemaText()))
	return schemas{
		"id":     doc(schemaForm(`^[a-z0-9_-]{1,64}$`), "Name of the rule in lists, metrics and keys"),
		"match":  doc(matchSection.schema(schemas{"route": doc(schemaWord(), `"*", a pattern such as "GET /u/{id}" or "/static/", or a resource`), "query": doc(schema{"type": "object", "additionalProperties": schemaText()}, "Parameters that the request must have; a star stands for any text")}, "route"), "Which requests the rule is for"),
		"action": doc(schemaChoice("ignore"), "ignore exempts the requests from all rules"),
		"by": doc(schema{"anyOf": []schema{
			schemaChoice(slices.Sorted(maps.Keys(byWords))...), names, bySection.schema(schemas{"combinations": names}, "combinations"),
		}}, "The parameters that make keys: names such as q, path:id, header:x-tenant, addr:ip, form:user, json:item.sku, ctx:user"),
		"unread": doc(schemaChoice(unreadWords()...), "What happens to requests whose body cannot be read"),
		"count":  doc(schemaChoice(unitWords()...), "What a request adds to its keys' counts. Default: requests"),
		"hot":    doc(oneOrMore(ref("threshold")), "When a key is hot: 200/s, 20%, 8x, or fields; of several any"),
		"limit":  doc(ref("limit"), "What a hot key is held to, or every request if there is no hot: 50/s, or fields"),
		"except": doc(schemaList(exceptSection.schema(schemas{
			"values": doc(values, "Names with a pattern, or several; a star stands for any text"),
			"action": doc(schemaChoice("allow", "block"), "allow neither counts nor limits, block refuses"),
			"hot":    doc(schemaRate(), "A threshold in place of the rule's, over the same window"),
			"limit":  ref("limit"),
		}, "values")), "Other terms for some values; the first that matches counts"),
		"allow":  doc(schema{"anyOf": []schema{values, schemaList(values)}}, "Values that are neither counted nor limited"),
		"block":  doc(schema{"anyOf": []schema{values, schemaList(values)}}, "Values that are always refused"),
		"prefix": doc(schemaText(), "StatsD prefix of the rule's counts. Default: namespace.id"),
		"key":    doc(schemaChoice("params", "full"), "params leaves the route out of keys"),
	}
}

func unreadWords() (words []string) {
	for u := rules.UnreadLimit; u <= rules.UnreadReject; u++ {
		words = append(words, u.String())
	}
	return words
}

func unitWords() (words []string) {
	for u := rules.Requests; u <= rules.Units; u++ {
		words = append(words, u.String())
	}
	return words
}

func schemaHot() schemas {
	return schemas{
		"rate":      doc(schemaTerms(), "Hot at so many within a window: 200/s, 60/1m, 10MB/10s"),
		"share":     doc(schemaForm(`%`), "Hot at such a part of the route's requests: 20%"),
		"jump":      doc(schemaForm(`[xX]`), "Hot at such a multiple of what the key had before: 8x"),
		"top":       doc(schemaWhole(1, 1000), "Hot if it is among the first so many"),
		"min":       doc(schemaText(), "The least count for share, jump and top: 50, or 50/10s"),
		"window":    doc(schemaDuration(), "The window of share, jump and top: 10s"),
		"over":      doc(schemaChoice("day"), "The past that jump compares with: day is the same hour of the days before"),
		"exit":      doc(schemaText(), "Below what the key cools: 80%, 160/s, 160. Default: 80%"),
		"hold":      doc(schemaDuration(), "The least time for which a key stays hot. Default: 10s"),
		"cool_down": doc(schemaDuration(), "How long a key must stay below exit to cool. Default: 5s"),
	}
}

func schemaLimit() schemas {
	algorithm := schema{"anyOf": []schema{schemaChoice(algorithms...), {"type": "string", "pattern": "^x_"}}}
	return schemas{
		"rate":               doc(schemaRate(), "50/s, 5/1m, 2MB/s"),
		"burst":              doc(schemaText(), "How much passes at once. Default: the count of rate"),
		"algorithm":          doc(algorithm, "Default: "+string(rules.TokenBucket)+"; x_… names one of your own"),
		"initial":            doc(schemaText(), "What a new bucket holds. Default: burst"),
		"shape":              doc(schemaFlag(), "Requests that pass are spaced evenly"),
		"warm_up":            doc(schemaDuration(), "How long the rate rises after a quiet time"),
		"cold_factor":        doc(schemaText(), "The rate begins at 1/cold_factor with warm_up"),
		"calendar":           doc(schemaChoice(calendars...), "Windows of the calendar, for algorithm: fixed_window"),
		"zone":               doc(schemaText(), "Time zone of calendar, such as Europe/Berlin"),
		"blocks":             doc(schemaWhole(1, 1<<31), "Parts of a window of algorithm: sliding_blocks"),
		"count_denied":       doc(schemaFlag(), "Refused requests count, too"),
		"penalty":            doc(schemaDuration(), "How long a key is locked after a refusal"),
		"scope":              doc(schemaChoice(string(rules.ScopeInstance), string(rules.ScopeShare), string(rules.ScopeExact)), "Whose requests share the limit. Default: instance"),
		"when_redis_is_away": doc(schemaChoice(string(rules.AwayLocal), string(rules.AwayOpen), string(rules.AwayClosed)), "For scope: exact. Default: local"),
		"on_limit":           doc(schemaChoice("reject", "wait", "serve", "shadow"), "What happens to requests over the limit. Default: reject"),
		"wait":               doc(schemaDuration(), "The longest that a request waits"),
		"concurrency":        doc(schemaWhole(1, rules.MaxConcurrency), "How many requests are served at a time"),
		"queue":              doc(schemaWhole(1, rules.MaxQueue), fmt.Sprintf("How many more may wait for concurrency. Default: %d", rules.DefaultQueue)),
		"priority": doc(prioritySection.schema(schemas{
			"by": schemaWord(), "first": schemaSome(schemaText()),
		}, prioritySection.fields...), "Which values of a parameter come first"),
		"serve": doc(serveSection.schema(schemas{
			"status": schemaWhole(200, 599), "type": schemaForm(`/`), "body": schemaText(),
		}), "The response of on_limit: serve"),
	}
}
