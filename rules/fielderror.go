package rules

import (
	"fmt"
	"strings"
)

// FieldError is one thing that is wrong with rules, a limit or a quota, what field it is
// about, and what to do.
type FieldError struct {
	// Field is the path of the field, in the names of the rules file:
	// "rules[2].limit.burst". Lists count from 0; the error of a [Limit] or a [Quota]
	// begins with "limit".
	Field string
	// Value is what the field holds, quoted if it is text; empty if the message shows
	// none.
	Value string
	// Reason says what is wrong.
	Reason string
	// Hint says what to do about it.
	Hint string
	// Needs are the paths of other fields that the error depends on, with all below
	// them. It has no meaning while one of them is wrong by itself.
	Needs []string
	// Earlier is the path of an earlier field that the field collides with; empty if
	// there is none.
	Earlier string

	sentence bool   // Reason does not need the field's name in front of it
	rule     string // `rule 2 ("id"): `, for Error
}

// earlier stands in a Reason for the place of the earlier field.
const earlier = "\x00"

// Text returns the message with other words for the field's name, its value and the
// place of the earlier field: those of the file in which it stands. An empty value is
// shown as e.Value.
func (e *FieldError) Text(name, value, place string) string {
	reason := strings.ReplaceAll(e.Reason, earlier, place)
	switch {
	case e.sentence:
		return reason
	case e.Value == "":
		return name + ": " + reason
	case value == "":
		value = e.Value
	}
	return name + " " + value + ": " + reason
}

// Error returns the message, after the number and the id of the rule.
func (e *FieldError) Error() string {
	name := e.Field
	if strings.HasPrefix(name, "rules[") {
		_, name, _ = strings.Cut(name, "].")
	}
	message := e.Text(name, "", e.Earlier)
	if exception, _, ok := strings.Cut(name, "]"); ok && e.sentence && strings.HasPrefix(name, "except[") {
		message = exception + "]: " + message
	}
	return e.rule + message
}

// finding is a FieldError that is still written, and so not yet an error.
type finding FieldError

// needs returns e with the paths of fields that it depends on.
func (e *finding) needs(fields ...string) *finding {
	e.Needs = append(e.Needs, fields...)
	return e
}

// FieldErrors are all things that are wrong, in the order of the fields.
type FieldErrors []*FieldError

// Error returns the messages, each on a line of its own.
func (all FieldErrors) Error() string {
	lines := make([]string, len(all))
	for i, e := range all {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the errors, for [errors.As].
func (all FieldErrors) Unwrap() []error {
	each := make([]error, len(all))
	for i, e := range all {
		each[i] = e
	}
	return each
}

// err returns all as an error; nil if there are none.
func (all FieldErrors) err() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// add appends "FIELD VALUE: reason", or "FIELD: reason" where value is empty.
func (all *FieldErrors) add(field, value, hint, format string, args ...any) *finding {
	e := &FieldError{Field: field, Value: value, Hint: hint, Reason: fmt.Sprintf(format, args...)}
	*all = append(*all, e)
	return (*finding)(e)
}

// addSentence appends a message that stands without the field's name.
func (all *FieldErrors) addSentence(field, hint, format string, args ...any) *finding {
	e := all.add(field, "", hint, format, args...)
	e.sentence = true
	return e
}

// below returns all with the paths put below parent.
func (all FieldErrors) below(parent string) FieldErrors {
	for _, e := range all {
		e.Field = join(parent, e.Field)
		for i := range e.Needs {
			e.Needs[i] = join(parent, e.Needs[i])
		}
	}
	return all
}

// join puts field below parent: one that begins with "../" beside it.
func join(parent, field string) string {
	if field == "" {
		return parent
	}
	if rest, ok := strings.CutPrefix(field, "../"); ok {
		return rest
	}
	return parent + "." + field
}
