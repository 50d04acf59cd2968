package config

import "github.com/hotparam/hotparam"

// What the design knows and this version cannot do is refused by name, with
// what works instead: a rule that silently did less than it says would be worse
// than none.

// unbuiltFields are fields, wherever they stand, and what works today.
var unbuiltFields = map[string]string{
	"redact": "what works today: names in secrets.extra never leave the process",
}

// unbuiltSources are sources of parameters that the grammar of keys reserves.
var unbuiltSources = map[hotparam.Source]bool{hotparam.RPC: true}

// unbuiltWords are values of some fields, and what works today.
var unbuiltWords = map[string]struct {
	words []string
	hint  string
}{
	"limit.scope": {
		[]string{"cluster"},
		"what works today: scope: exact, one limit over all instances; share, a part of it on each; instance",
	},
}
