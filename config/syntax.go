package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// The parser's input is bounded, because the parser takes time quadratic in the number of
// tokens (minutes for 1 MiB of brackets) and of the paths to them. Within these bounds it takes
// about a second at worst.
const (
	maxTokens = 50_000 // some 800 rules
	maxDepth  = 16     // of nested lists and maps
	maxName   = 256    // bytes of a field's name
)

// parse makes nodes of the text. It returns nil if it has reported why it cannot.
func (d *decoder) parse() (root *fileNode) {
	defer func() {
		if cause := recover(); cause != nil { // the parser is not ours, and a file may be hostile
			d.report(position{1, 1}, "check brackets, quotes and indentation", "not YAML: %v", cause)
			root = nil
		}
	}()
	tokens := lexer.Tokenize(d.text.body)
	realign(tokens, d.text.raw)
	tokens = joinColons(tokens)
	if !d.supported(tokens) {
		return nil
	}
	// Duplicates are reported by convert: all of them, and not as bad syntax.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntaxError(err)
		return nil
	}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			return d.convert(doc.Body, position{1, 1})
		}
	}
	d.report(position{1, 1}, fileExample, "the file is empty")
	return nil
}

// syntaxError reports the parser's error at its place.
func (d *decoder) syntaxError(err error) {
	pos, message := position{1, 1}, err.Error()
	if e, ok := err.(interface {
		GetToken() *token.Token
		GetMessage() string
	}); ok {
		message = e.GetMessage()
		if tk := e.GetToken(); tk != nil {
			pos = place(tk)
		}
	}
	d.badSyntax(pos, message)
}

func (d *decoder) badSyntax(pos position, message string) {
	hint := `check the indentation, and put text that holds ": " or " #" in quotes`
	line := d.text.shown[d.text.nearestLine(pos.line)-1]
	switch {
	case strings.Contains(message, "'\t'"), strings.Contains(message, "tab character"):
		hint = "use spaces here, not tabs"
	case strings.Contains(message, "reserved character"):
		hint = "put the text in quotes"
	case strings.Contains(message, "end character"):
		hint = "close the quotes"
	case strings.ContainsAny(line, "{}[]"):
		hint = `close every bracket, and put text that holds { } [ ] or , in quotes, as in route: "GET /u/{id}"`
	}
	d.report(pos, hint, "not YAML: %s", strings.ReplaceAll(message, "\t", `\t`))
}

func place(tk *token.Token) position { return position{tk.Position.Line, tk.Position.Column} }

// unsupported has the kinds of YAML tokens that a file must not have.
var unsupported = map[token.Type]struct{ message, hint string }{
	token.AnchorType:     {"anchors (&name) are not supported", "write the value where it is used; put text that begins with & in quotes"},
	token.AliasType:      {"aliases (*name) are not supported", `write the value in place of the alias; if you mean the text *, put it in quotes: "*"`},
	token.MergeKeyType:   {"merge keys (<<) are not supported", "write the fields where they are used"},
	token.TagType:        {"tags (!name) are not supported", "remove it; put text that begins with ! in quotes"},
	token.DirectiveType:  {"directives (%NAME) are not supported", "remove it; put text that begins with % in quotes"},
	token.MappingKeyType: {`complex keys ("? ") are not supported`, "write name: value"},
}

// supported reports invalid tokens and unsupported YAML. It returns false if there are any.
func (d *decoder) supported(tokens token.Tokens) bool {
	if len(tokens) > maxTokens {
		d.report(place(tokens[maxTokens]), "split the rules by service", "more than %d words and signs up to here", maxTokens)
		return false
	}
	content, ended := false, false
	depth, entries, line := 0, 0, 0
	for _, tk := range tokens {
		pos := place(tk)
		if what, found := unsupported[tk.Type]; found {
			d.report(pos, what.hint, "%s", what.message)
			if tk.Type == token.DirectiveType {
				return false // the rest is its text
			}
		}
		if tk.Type == token.CommentType {
			continue
		}
		if ended || content && tk.Type == token.DocumentHeaderType {
			d.report(pos, "keep one document in one file", "a second document begins here")
			return false
		}
		content = true
		if pos.line != line {
			line, entries = pos.line, 0
		}
		switch tk.Type {
		case token.InvalidType:
			d.badSyntax(pos, tk.Error)
		case token.DocumentEndType:
			ended = true
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
			if tk.Type == token.SequenceEndType {
				d.bracketed(pos)
			}
		case token.SequenceEntryType:
			entries++
		case token.MappingValueType:
			if tk.Prev != nil && len(tk.Prev.Value) > maxName {
				d.report(place(tk.Prev), "is a quote missing?", "a name is longer than %d bytes", maxName)
				return false
			}
			d.colon(tk)
		}
		if depth > maxDepth || entries > maxDepth {
			d.report(pos, "rules need no more than five", "nested more than %d deep", maxDepth)
			return false
		}
	}
	return len(d.problems) == 0
}

// realign corrects the columns of tokens, since the lexer does not count the tabs between them.
func realign(tokens token.Tokens, lines []string) {
	var runes []rune // runes of the line, if it has tabs
	line, shift, end := 0, 0, 0
	for _, tk := range tokens {
		pos := tk.Position
		if pos.Line != line {
			line, shift, end, runes = pos.Line, 0, 0, nil
			if 1 <= line && line <= len(lines) && strings.Contains(lines[line-1], "\t") {
				runes = []rune(lines[line-1])
			}
		}
		start := []rune(beginning(tk))
		if runes == nil || len(start) == 0 {
			continue
		}
		i := max(pos.Column-1+shift, end)
		for i+len(start) <= len(runes) && !slices.Equal(runes[i:i+len(start)], start) {
			i++
		}
		if i+len(start) > len(runes) {
			runes = nil // not found: the rest of the line stays as it is
			continue
		}
		shift, end = i+1-pos.Column, i+len(start)
		pos.Column = i + 1
	}
}

// beginning returns the first characters of a token in the file.
func beginning(tk *token.Token) string {
	switch tk.Type {
	case token.DoubleQuoteType:
		return `"`
	case token.SingleQuoteType:
		return `'`
	case token.CommentType:
		return "#"
	}
	for word := range strings.FieldsSeq(tk.Value) {
		return word
	}
	return ""
}

// convert makes a node from the parser's. An empty value gets the given place.
func (d *decoder) convert(n ast.Node, pos position) *fileNode {
	switch n := n.(type) {
	case *ast.NullNode:
		if n.Token.Type == token.ImplicitNullType {
			return &fileNode{kind: nullKind, pos: pos}
		}
		return &fileNode{kind: nullKind, pos: place(n.Token)}
	case *ast.StringNode:
		return &fileNode{kind: scalarKind, pos: place(n.Token), text: n.Value}
	case *ast.LiteralNode:
		return &fileNode{kind: scalarKind, pos: place(n.Start), text: n.Value.Value}
	case *ast.SequenceNode:
		list := &fileNode{kind: listKind, pos: place(n.Start)}
		for i, value := range n.Values {
			pos := list.pos
			if entry := n.Entries[i].Start; entry != nil {
				pos = place(entry)
			}
			list.items = append(list.items, d.convert(value, pos))
		}
		return list
	case *ast.MappingNode:
		return d.convertMap(n)
	case ast.ScalarNode: // numbers and booleans, as written
		return &fileNode{kind: scalarKind, pos: place(n.GetToken()), text: n.GetToken().Value}
	}
	d.report(pos, "write fields, lists and text only", "a %s is not supported", strings.ToLower(n.Type().String()))
	return &fileNode{kind: nullKind, pos: pos}
}

func (d *decoder) convertMap(n *ast.MappingNode) *fileNode {
	m := &fileNode{kind: mapKind}
	if n.IsFlowStyle {
		m.pos = place(n.Start)
	} else {
		m.pos = place(n.Values[0].Key.GetToken())
	}
	first := make(map[string]int) // line of each name
	for _, value := range n.Values {
		key := value.Key.GetToken()
		pos := place(key)
		if line, found := first[key.Value]; found {
			d.report(pos, "keep one of them", "%s is there twice, first in line %d", quote(key.Value), line)
			continue
		}
		first[key.Value] = pos.line
		m.fields = append(m.fields, mapField{key.Value, pos, d.convert(value.Value, pos)})
	}
	return m
}
