package config

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// joinColons joins plain text in a list that the lexer has cut at colons. Within any braces the
// lexer takes each colon as a field's, even in {addresses: [a:8125]}, which is text in
// YAML 1.2 (7.3.3): a colon is a field's only if a space follows it.
func joinColons(tokens token.Tokens) token.Tokens {
	var open []token.Type // brackets and braces around the token
	var joined token.Tokens
	for _, tk := range tokens {
		switch tk.Type {
		case token.MappingStartType, token.SequenceStartType:
			open = append(open, tk.Type)
		case token.MappingEndType, token.SequenceEndType:
			open = open[:max(0, len(open)-1)]
		}
		if n := len(joined); n >= 2 && isPlain(tk) && len(open) > 0 && open[len(open)-1] == token.SequenceStartType {
			colon, before := joined[n-1], joined[n-2]
			switch {
			case colon.Type != token.MappingValueType || !adjoin(colon, tk):
			case isPlain(before) && adjoin(before, colon): // a:8125
				tk = joinText(before, colon, tk)
				joined = joined[:n-2]
			case before.Type == token.SequenceStartType, before.Type == token.CollectEntryType: // :8125
				tk = joinText(colon, tk)
				joined = joined[:n-1]
			}
		}
		joined.Add(tk)
	}
	if n := len(joined); n > 0 {
		joined[n-1].Next = nil
	}
	return joined
}

func joinText(tokens ...*token.Token) *token.Token {
	var text string
	for _, tk := range tokens {
		text += tk.Value
	}
	return token.String(text, text, tokens[0].Position)
}

// isPlain reports whether a token is unquoted text, a number or the like.
func isPlain(tk *token.Token) bool {
	return tk.CharacterType == token.CharacterTypeMiscellaneous && tk.Type != token.InvalidType
}

// adjoin reports whether b begins directly after a.
func adjoin(a, b *token.Token) bool {
	return a.Position.Line == b.Position.Line && a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column
}

// colon reports a colon that is directly followed by text. Within braces the parser reads
// {path:id: 7} as {path: "id: 7"}, although YAML reads {"path:id": 7}.
func (d *decoder) colon(tk *token.Token) {
	if tk.Prev == nil || tk.Prev.Type == token.DoubleQuoteType || tk.Prev.Type == token.SingleQuoteType {
		return // allowed, as in JSON
	}
	if tk.Prev.Type == token.SequenceEndType && adjoin(tk.Prev, tk) {
		return // reported by bracketed
	}
	if pos := place(tk); d.textBehind(pos) {
		d.report(pos, `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`, "a colon without a space behind it")
	}
}

// bracketed reports a closing bracket at the place if a colon and text follow it directly. That
// is an IPv6 address with a port, which YAML reads as a list.
func (d *decoder) bracketed(pos position) {
	behind := position{pos.line, pos.column + 1}
	if d.runeAt(behind) == ':' && d.textBehind(behind) {
		d.report(behind, `an IPv6 address with a port needs quotes: "[::1]:8125"`, "text right behind a list")
	}
}

// textBehind reports whether text directly follows the place.
func (d *decoder) textBehind(pos position) bool {
	r := d.runeAt(position{pos.line, pos.column + 1})
	return r != 0 && !strings.ContainsRune(" \t,]}", r)
}

// runeAt returns the character at the place, or 0 after the end of the line.
func (d *decoder) runeAt(pos position) rune {
	if pos.line > len(d.text.raw) {
		return 0
	}
	column := 0
	for _, r := range d.text.raw[pos.line-1] {
		if column++; column == pos.column {
			return r
		}
	}
	return 0
}
