package base

import "strings"

// JSONPathHint shows how names are written, for messages.
const JSONPathHint = `json:user.id is the id of user, json:items.*.id that of each element; a dot in a name is written \.`

// MaxJSONPathSteps is the maximum number of steps of a path. It bounds how deep a document is
// walked.
const MaxJSONPathSteps = 16

// JSONPathStep leads from a value to values within it.
type JSONPathStep struct {
	Name    string // name of a member of an object
	Element bool   // whether it leads to each element of an array instead
}

// ParseJSONPath reads the name of a value of a JSON document in rules: names separated by dots,
// with a star for each element of an array. A backslash escapes a dot or a backslash in a name,
// and the star of a name that is just a star. Each path has one spelling. If the text is not a
// path, ParseJSONPath returns a message that says why.
func ParseJSONPath(s string) (steps []JSONPathStep, message string) {
	var name strings.Builder
	escapedStar := false
	end := func() {
		step := JSONPathStep{Name: name.String()}
		if step.Name == "*" && !escapedStar {
			step = JSONPathStep{Element: true}
		}
		if step == (JSONPathStep{}) {
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
			message = `a backslash may only precede a dot, a star or a backslash`
		}
	}
	end()
	if message == "" && len(steps) > MaxJSONPathSteps {
		message = "the path has more than 16 steps"
	}
	if message != "" {
		return nil, message
	}
	return steps, ""
}
