package rules

import (
	"fmt"
	"strings"
)

// FieldError is one error of rules, a limit or a quota: the field, the reason, and a hint for the
// fix.
type FieldError struct {
	// Field is the path of the field, in the names of the rules file:
	// "rules[2].limit.burst". Lists count from 0; the error of a [Limit] or a [Quota]
	// begins with "limit".
	Field string
	// Value is the field's value, quoted if it is text. It is empty if the message shows none.
	Value string
	// Reason describes the error.
	Reason string
	// Hint suggests a fix.
	Hint string
	// Needs are the paths of other fields that the error depends on, with all fields below them.
	// While one of those has an error of its own, this error is meaningless.
	Needs []string
	// Earlier is the path of an earlier field that the field collides with, or empty.
	Earlier string

	sentence bool   // Reason is a sentence, and the field's name is not put before it
	rule     string // `rule 2 ("id"): `, for Error
}

// earlier marks the place of the earlier field in a Reason.
const earlier = "\x00"

// Text returns the message with the given field name, value and place of the earlier field, as
// the file in which the error stands has them. For an empty value it shows e.Value.
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

// finding is a FieldError that is still being written, and so is not an error yet.
type finding FieldError

// needs adds the paths of fields that e depends on, and returns e.
func (e *finding) needs(fields ...string) *finding {
	e.Needs = append(e.Needs, fields...)
	return e
}

// FieldErrors are all errors that were found, in the order of the fields.
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

// err returns all as an error, or nil if there are none.
func (all FieldErrors) err() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// add appends "FIELD VALUE: reason", or "FIELD: reason" for an empty value.
func (all *FieldErrors) add(field, value, hint, format string, args ...any) *finding {
	e := &FieldError{Field: field, Value: value, Hint: hint, Reason: fmt.Sprintf(format, args...)}
	*all = append(*all, e)
	return (*finding)(e)
}

// addSentence appends a message that does not begin with the field's name.
func (all *FieldErrors) addSentence(field, hint, format string, args ...any) *finding {
	e := all.add(field, "", hint, format, args...)
	e.sentence = true
	return e
}

// below puts parent before the paths of all, and returns all.
func (all FieldErrors) below(parent string) FieldErrors {
	for _, e := range all {
		e.Field = join(parent, e.Field)
		for i := range e.Needs {
			e.Needs[i] = join(parent, e.Needs[i])
		}
	}
	return all
}

// join returns the path of field below parent. A field that begins with "../" is a sibling of
// parent.
func join(parent, field string) string {
	if field == "" {
		return parent
	}
	if tail, ok := strings.CutPrefix(field, "../"); ok {
		return tail
	}
	return parent + "." + field
}
