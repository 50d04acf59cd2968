package hpfiber

import (
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/hotparam/hotparam/middleware/adapter"
)

// parse returns the parts of a template of Fiber: ":name", ":name?" and ":name<constraints>"
// are parameters up to the following text, "*" and "+" are greedy, and "\\" escapes.
func parse(template string) (parts []adapter.Part) {
	for template != "" {
		switch i := nextParam(template); {
		case i != 0:
			parts = append(parts, adapter.Part{Text: fiber.RemoveEscapeChar(template[:i])})
			template = template[i:]
		case template[0] == '*' || template[0] == '+':
			template = template[1:]
			parts = append(parts, adapter.Part{Name: "path", Rest: template == ""})
		default:
			var name string
			name, template = cutParam(template[1:])
			parts = append(parts, adapter.Part{Name: name})
		}
	}
	return parts
}

// isStart reports whether c starts a parameter.
func isStart(c byte) bool { return c == ':' || c == '*' || c == '+' }

// nextParam returns the index where the next parameter starts, or the length of the template.
// If several of ":", "*" and "+" follow a text in a row, the last one starts the parameter, unless
// the first is "*".
func nextParam(template string) int {
	for i := range len(template) {
		if !isStart(template[i]) || i > 0 && template[i-1] == '\\' {
			continue
		}
		if i > 0 && template[i] != '*' {
			for i+1 < len(template) && isStart(template[i+1]) {
				i++
			}
		}
		return i
	}
	return len(template)
}

// cutParam returns the name of the parameter that s begins with, and the text after it.
func cutParam(s string) (name, after string) {
	opened, closed := -1, -1 // the brackets of its constraints
	end := len(s)
	for i := range len(s) {
		escaped := i > 0 && s[i-1] == '\\'
		switch c := s[i]; {
		case c == '<' && opened < 0 && !escaped:
			opened = i
			continue
		case c == '>' && closed < 0 && !escaped:
			closed = i
			continue
		case !strings.ContainsRune(`?:\/-.`, rune(c)) || (opened < 0) != (closed < 0):
			continue
		}
		end = i
		break
	}
	name, after = s[:end], s[end:]
	if opened >= 0 && closed >= 0 {
		name = s[:opened]
	}
	if name = fiber.RemoveEscapeChar(name); name == "" {
		name = "path"
	}
	return name, strings.TrimPrefix(after, "?")
}
