// Package config reads hotparam.yaml: the rules, the aggregator's settings, and how
// counts travel.
//
// A file is read in steps:
//
//	text ─► syntax ─► sections (rule, match, by, hot, …, aggregator, kafka) ─► validate ─► File or Problems
//
// text makes lines of bytes, syntax makes a tree of nodes that know where they
// stand, and each section turns its node into the words of package rules.
// Package hotparam alone judges rules, by the paths of their fields; validate finds
// the places of these in the file. The sections report what only a file can get
// wrong: unknown fields, words, numbers and units that cannot be read.
// The sections that become a struct alone, all but the rules, are declared: a setting is one
// row of its struct's method settings, from which come reading, defaults, comparison and the
// schema. settings says how rows work, and scalars has the kinds of values.
// Every scalar is read as its text, whatever YAML takes it for: a value pattern
// of 1 or true needs no quotes.
//
// The error of a bad file is [Problems]: all of its errors, in the order of the
// file, each with its place and with what to do about it. YAML that makes a
// rule mean something other than what it seems to say (anchors, merge keys,
// tags, a second document) is refused, and so is what the design knows and is
// not built yet.
package config
