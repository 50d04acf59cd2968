package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/hotparam/hotparam/kafka"
)

// compileSchema compiles the schema with a library that is not used to make it.
func compileSchema(t interface{ Fatal(...any) }) *jsonschema.Schema {
	text, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaID, document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile(schemaID)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

// asJSON returns a YAML file as the value that an editor sees.
func asJSON(source string) (value any, err error) {
	if err := yaml.Unmarshal([]byte(strings.TrimPrefix(source, "\uFEFF")), &value); err != nil {
		return nil, err
	}
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(text))
}

// Every example in the repository is valid.
func TestSchemaAcceptsTheExamples(t *testing.T) {
	compiled := compileSchema(t)
	found := 0
	for _, pattern := range []string{"../deploy/hotparam*.yaml", "../examples/*/*.yaml", "../adapters/*/example/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			value, err := asJSON(string(text))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			found++
			if err := compiled.Validate(value); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	if found < 9 {
		t.Errorf("%d examples, want 9 at least", found)
	}
}

// schemaFields visits the fields of all sections below a schema, with their paths.
func schemaFields(of any, path string, visit func(path string, item schema)) {
	switch item := of.(type) {
	case schema:
		for name, inner := range item {
			if name != "properties" {
				schemaFields(inner, path, visit)
				continue
			}
			for name, field := range inner.(schema) {
				visit(path+"."+name, field.(schema))
				schemaFields(field, path+"."+name, visit)
			}
		}
	case []schema:
		for _, inner := range item {
			schemaFields(inner, path, visit)
		}
	}
}

// The schema describes each field.
func TestSchemaKnowsAllFields(t *testing.T) {
	schemaFields(Schema(), "", func(path string, item schema) {
		if len(item) == 0 {
			t.Errorf("%s: the schema says nothing about it", path)
		}
	})
}

// The schema accepts any file that the parser reads.
func TestSchemaAcceptsWhatTheParserReads(t *testing.T) {
	compiled := compileSchema(t)
	rapid.Check(t, func(t *rapid.T) {
		source, _, _ := drawSource(t)
		value, err := asJSON(source)
		if err != nil {
			return // YAML that a parser of YAML 1.2 may read in another way
		}
		if err := compiled.Validate(value); err != nil {
			t.Fatalf("%v\nof\n%s", err, source)
		}
	})
}

// The schema refuses no mutated file that the parser reads. If a field is unknown, or a value is
// of the wrong kind, both refuse.
func TestSchemaAndParserAgreeOverMutatedFiles(t *testing.T) {
	compiled := compileSchema(t)
	both, parserAlone := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		source, _, _ := drawSource(t)
		value, err := asJSON(source)
		if err != nil {
			return
		}
		var places []container
		collect(&places, value, "")
		p := places[rapid.IntRange(0, len(places)-1).Draw(t, "place")]
		certain := p.mutate(t)
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		value, err = asJSON(string(text))
		if err != nil {
			t.Fatal(err)
		}
		_, refused := Parse("f.yaml", text)
		invalid := compiled.Validate(value)
		switch {
		case refused == nil && invalid != nil:
			t.Fatalf("the schema alone refuses: %v\nin\n%s", invalid, text)
		case refused != nil && invalid == nil && certain:
			t.Fatalf("the parser alone refuses: %v\nin\n%s", refused, text)
		case certain && refused == nil:
			t.Fatalf("neither refuses\n%s", text)
		case refused != nil && invalid != nil:
			both++
		case refused != nil:
			parserAlone++
		}
	})
	t.Logf("%d files refused by both, %d by the parser alone", both, parserAlone)
	if both == 0 {
		t.Error("no mutated file was refused by both")
	}
}

// container is an object or a list within a file, and its path.
type container struct {
	object map[string]any
	list   []any
	path   string
}

func collect(places *[]container, value any, path string) {
	switch v := value.(type) {
	case map[string]any:
		*places = append(*places, container{object: v, path: path})
		for _, name := range slices.Sorted(maps.Keys(v)) {
			collect(places, v[name], path+"."+name)
		}
	case []any:
		if len(v) > 0 {
			*places = append(*places, container{list: v, path: path})
		}
		for _, item := range v {
			collect(places, item, path)
		}
	}
}

// open reports whether the object has free names, such as those of parameters, that no section
// knows.
func (p *container) open() bool {
	for _, end := range []string{".query", ".values", ".allow", ".block"} {
		if strings.HasSuffix(p.path, end) {
			return true
		}
	}
	return false
}

// mutate changes the place, and reports whether that is an error that a schema can see.
func (p *container) mutate(t *rapid.T) (certain bool) {
	other := rapid.SampledFrom([]any{
		"", "word", "7/s", "50%", 7, -1, 1.5, true, nil, []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"}, []any{[]any{}},
	}).Draw(t, "value")
	if p.list != nil {
		p.list[rapid.IntRange(0, len(p.list)-1).Draw(t, "item")] = other
		return other == nil
	}
	names := slices.Sorted(maps.Keys(p.object))
	if len(names) == 0 || rapid.IntRange(0, 2).Draw(t, "how") == 0 {
		p.object[fmt.Sprintf("unknown%d", rapid.IntRange(0, 9).Draw(t, "name"))] = "x"
		return !p.open()
	}
	name := rapid.SampledFrom(names).Draw(t, "field")
	if rapid.Bool().Draw(t, "drop") {
		delete(p.object, name)
		return false
	}
	p.object[name] = other
	return other == nil
}

// Each field of a struct is a setting, so none is left out when files are compared.
func TestEachFieldIsASetting(t *testing.T) {
	for _, test := range []struct {
		of   any
		all  settings
		more int // settings that are in a struct within, less fields that are none
	}{
		{Guard{}, new(Guard).settings(), 0}, {Door{}, new(Door).tokenSettings(), 0}, {AuthEndpoint{}, new(AuthEndpoint).settings(), 7},
		{Aggregator{}, new(Aggregator).settings(), 0}, {Caps{}, new(Caps).settings(), 0}, {History{}, new(History).settings(), -1}, {Redis{}, new(Redis).settings(), 0},
		{StatsD{}, new(StatsD).settings(), 0}, {Kafka{}, new(Kafka).settings(), reflect.TypeFor[kafka.Connection]().NumField() - 1}, {Graphite{}, new(Graphite).settings(), 0},
		{Webhook{}, new(Webhook).settings(), 0}, {kafka.TLS{}, settingsOf(new(kafka.TLS)), 0},
	} {
		if n := reflect.TypeOf(test.of).NumField(); n+test.more != len(test.all) {
			t.Errorf("%T has %d fields, and %d settings, want %d", test.of, n, len(test.all), n+test.more)
		}
	}
}
