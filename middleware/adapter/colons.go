package adapter

import "strings"

// ParseColons returns the parts of a template in the syntax of gin and Echo. ":name" is a
// parameter up to the next slash, "*name" or "*" is the rest of the path, and "\\:" is a colon.
func ParseColons(template string) (parts []Part) {
	addText := func(text string) {
		if text != "" {
			parts = append(parts, Part{Text: text})
		}
	}
	for template != "" {
		i := strings.IndexAny(template, `:*\`)
		if i < 0 {
			addText(template)
			break
		}
		addText(template[:i])
		kind, after := template[i], template[i+1:]
		switch {
		case kind == '*':
			return append(parts, Part{Name: after, Rest: true})
		case kind == ':':
			end := strings.IndexAny(after, `/\`)
			if end < 0 {
				end = len(after)
			}
			parts = append(parts, Part{Name: after[:end]})
			template = after[end:]
		case strings.HasPrefix(after, ":"):
			addText(":")
			template = after[1:]
		default:
			addText(`\`)
			template = after
		}
	}
	return parts
}
