// Package config reads hotparam.yaml: the rules, the aggregator's settings, and how
// counts travel.
//
// A file is read in steps:
//
//	text ─► syntax ─► sections (rule, match, by, hot, …, aggregator, kafka) ─► validate ─► File or Problems
//
// text splits bytes into lines, syntax makes a tree of nodes with their positions, and each
// section turns its node into the types of package rules. Only package rules judges rules, by
// the paths of their fields; validate finds the places of these in the file. The sections
// report errors that only a file can have: unknown fields, words, numbers and units that cannot
// be read.
//
// Sections are declared: a setting is one row of the section's settings, which serve reading,
// defaults, comparison and the schema. Type settings explains the rows, and file scalars has the
// kinds of values. Every scalar is read as its text, whatever type YAML gives it: a value pattern
// of 1 or true needs no quotes.
//
// The error of a bad file is [Problems]: all of its errors, in the order of the file, each with
// its place and a hint. YAML that gives a rule another meaning than it seems to have (anchors,
// merge keys, tags, a second document) is refused.
package config
