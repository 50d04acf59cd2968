package config

import (
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
	s := newFile().settings().schema("rules")
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = schemaID
	s["title"] = "hotparam.yaml"
	s["description"] = "Rules and settings of hotparam"
	s["$defs"] = map[string]any{
		"rule":      ruleSettings(new(rules.Rule)).schema("id", "match"),
		"limit":     anyOf(schemaRate, new(limitFields).settings().form())(),
		"threshold": anyOf(schemaTerms, hotSection.fields.form())(),
		"tls":       settingsOf(new(kafka.TLS)).schema(),
	}
	return s
}

// schema is a part of a JSON schema.
type schema = map[string]any

// form is the form of a value in a file. It makes the schema, which reading a file does not need.
type form = func() schema

// formOf returns the form with this schema.
func formOf(s schema) form { return func() schema { return s } }

func ref(name string) form { return formOf(schema{"$ref": "#/$defs/" + name}) }

// Every scalar is read as its text, so numbers and booleans are text too.

func schemaText() schema { return schema{"type": []string{"string", "number", "boolean"}} }

// schemaWord returns the schema of non-empty text.
func schemaWord() schema {
	s := schemaText()
	s["minLength"] = 1
	return s
}

// schemaForm returns the form of text that matches pattern. Numbers and booleans always match; the
// parser checks them.
func schemaForm(pattern string) form {
	return func() schema {
		s := schemaText()
		s["pattern"] = pattern
		return s
	}
}

func schemaChoice(words ...string) form { return func() schema { return schema{"enum": words} } }

func schemaFlag() schema { return schema{"enum": []any{true, false, "true", "false"}} }

func schemaWhole(least, greatest int64) form {
	return func() schema {
		return schema{"type": []string{"integer", "string"}, "minimum": least, "maximum": greatest, "pattern": `^\s*[+]?[0-9]+\s*$`}
	}
}

func schemaDuration() schema {
	return schema{"type": []string{"string", "integer"}, "pattern": `^\s*[+-]?(0|([0-9]*\.?[0-9]*(ns|us|µs|μs|ms|s|m|h|d|w))+)\s*$`, "minimum": 0, "maximum": 0}
}

func schemaSize() schema {
	return schema{"type": []string{"number", "string"}, "minimum": 1}
}

func schemaList(item form) form {
	return func() schema { return schema{"type": "array", "items": item()} }
}

func schemaSome(item form) form {
	return func() schema { return schema{"type": "array", "items": item(), "minItems": 1} }
}

// schemaValues returns the schema of names with one value or several, as in except.values.
func schemaValues() schema {
	return schema{"type": "object", "additionalProperties": oneOrMore(schemaText)(), "minProperties": 1}
}

func oneOrMore(item form) form { return anyOf(item, schemaSome(item)) }

func anyOf(forms ...form) form {
	return func() schema {
		var all []schema
		for _, f := range forms {
			all = append(all, f())
		}
		return schema{"anyOf": all}
	}
}

// schemaRate returns the schema of a count, a slash and a time: "200/s", "10MB/1m", "30s/1m".
func schemaRate() schema { return schema{"type": "string", "pattern": `^[^/]+/[^/]+$`} }

// schemaTerms returns the schema of a rate, a share or a multiple: "200/s", "20%", "8x/1m".
func schemaTerms() schema {
	return schema{"type": "string", "pattern": `^([^/]+/[^/]+|\s*[0-9.]+\s*[%xX]\s*)$`}
}
