package config

import (
	"maps"

	"github.com/hotparam/hotparam/kafka"
	"github.com/hotparam/hotparam/rules"
)

// schemaID is the $id of [Schema].
const schemaID = "https://hotparam.dev/schema/hotparam.json"

// Schema returns the JSON schema (draft 2020-12) of a rules file, for editors. It is made from
// the tables of settings, sections and words that the parser uses, so it has every field that
// the parser knows. Reflection over the types of a parsed file, as in
// github.com/invopop/jsonschema, was rejected: the types have the meaning of a file, and not its
// spelling ("200/s" becomes a Threshold).
//
// [Parse] refuses more than the schema: contradictory fields, and numbers with units that are
// out of bounds. It refuses everything that the schema refuses.
func Schema() map[string]any {
	s := topSection.fields.schema("rules")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "hotparam.yaml"
	s["description"] = "Rules and settings of hotparam"
	s["$defs"] = map[string]any{
		"rule":      ruleSection.fields.schema("id", "match"),
		"limit":     scalarOr(schemaRate, limitSection.fields.schema()),
		"threshold": scalarOr(schemaTerms, hotSection.fields.schema()),
		"tls":       settingsOf(new(kafka.TLS)).schema(),
	}
	return s
}

// schema is a part of a JSON schema.
type schema = map[string]any

// doc returns the schema with a description, which editors show.
func doc(s schema, description string) schema {
	s = maps.Clone(s)
	s["description"] = description
	return s
}

func ref(name string) schema { return schema{"$ref": "#/$defs/" + name} }

// Every scalar is read as its text, so numbers and booleans are text too.

func schemaText() schema { return schema{"type": []string{"string", "number", "boolean"}} }

// schemaWord returns the schema of non-empty text.
func schemaWord() schema {
	s := schemaText()
	s["minLength"] = 1
	return s
}

// schemaForm returns the schema of text that matches pattern. Numbers and booleans always match;
// the parser checks them.
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

func schemaList(item schema) schema { return schema{"type": "array", "items": item} }

func schemaSome(item schema) schema { return schema{"type": "array", "items": item, "minItems": 1} }

// schemaValues returns the schema of names with one value or several, as in except.values.
func schemaValues() schema {
	return schema{"type": "object", "additionalProperties": oneOrMore(schemaText()), "minProperties": 1}
}

func oneOrMore(item schema) schema { return schema{"anyOf": []schema{item, schemaSome(item)}} }

func scalarOr(scalar func() schema, object schema) schema {
	return schema{"anyOf": []schema{scalar(), object}}
}

// schemaRate returns the schema of a count, a slash and a time: "200/s", "10MB/1m", "30s/1m".
func schemaRate() schema { return schema{"type": "string", "pattern": `^[^/]+/[^/]+$`} }

// schemaTerms returns the schema of a rate, a share or a multiple: "200/s", "20%", "8x/1m".
func schemaTerms() schema {
	return schema{"type": "string", "pattern": `^([^/]+/[^/]+|\s*[0-9.]+\s*[%xX]\s*)$`}
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
