// Package jsonpath reads the names by which rules have values of JSON documents.
package jsonpath

import "strings"

// Hint shows how names are written.
const Hint = `json:user.id is the id of user, json:items.*.id that of each element; a dot in a name is written \.`

// MaxSteps is the greatest number of steps of a path, which bounds how deep a document is
// walked.
const MaxSteps = 16

// Step leads from a value to those within it.
type Step struct {
	Name    string // of a member of an object
	Element bool   // each element of an array, instead
}

// Parse reads a path: names with dots between, a star for each element of an array. A
// backslash stands before a dot or a backslash of a name, and before the star of a name
// that is nothing else. Each path is written in one way only. If the text is no path, Parse
// returns what is wrong with it.
func Parse(s string) (steps []Step, message string) {
	var name strings.Builder
	escapedStar := false
	end := func() {
		step := Step{Name: name.String()}
		if step.Name == "*" && !escapedStar {
			step = Step{Element: true}
		}
		if step == (Step{}) {
			message = "a name between two dots is empty"
		}
		if escapedStar && step.Name != "*" {
			message = "a star within a name needs no backslash"
		}
		steps = append(steps, step)
		name.Reset()
		escapedStar = false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '.':
			end()
		case c != '\\':
			name.WriteByte(c)
		case i+1 < len(s) && strings.IndexByte(`.\*`, s[i+1]) >= 0:
			i++
			escapedStar = escapedStar || s[i] == '*'
			name.WriteByte(s[i])
		default:
			message = `a backslash stands before a dot, a star or a backslash`
		}
	}
	end()
	if message == "" && len(steps) > MaxSteps {
		message = "the path has more than 16 steps"
	}
	if message != "" {
		return nil, message
	}
	return steps, ""
}
