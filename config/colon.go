package config

import (
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/token"
)

// joinColons joins what the lexer cuts at the colons of plain text in a list. Within any
// braces it takes each colon for that of a field, also in {addresses: [a:8125]}, where YAML
// 1.2 (7.3.3) has text: a colon is that of a field only with a space behind it.
func joinColons(tokens token.Tokens) token.Tokens {
	var open []token.Type // the brackets and braces around a token
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

// isPlain reports whether a token is text, or a number or the like, without quotes.
func isPlain(tk *token.Token) bool {
	return tk.CharacterType == token.CharacterTypeMiscellaneous && tk.Type != token.InvalidType
}

// adjoin reports whether b begins right behind a.
func adjoin(a, b *token.Token) bool {
	return a.Position.Line == b.Position.Line && a.Position.Column+utf8.RuneCountInString(a.Value) == b.Position.Column
}

// colon reports one with text right behind it: within braces the parser takes
// {path:id: 7} for {path: "id: 7"}, where YAML says {"path:id": 7}.
func (d *decoder) colon(tk *token.Token) {
	if tk.Prev == nil || tk.Prev.Type == token.DoubleQuoteType || tk.Prev.Type == token.SingleQuoteType {
		return // as in JSON
	}
	if tk.Prev.Type == token.SequenceEndType && adjoin(tk.Prev, tk) {
		return // as bracketed reports
	}
	if at := place(tk); d.textBehind(at) {
		d.report(at, `put a space behind it; within braces, text that has a colon needs quotes: "path:id"`, "a colon without a space behind it")
	}
}

// bracketed reports a bracket at the place with a colon and text right behind it: an IPv6
// address and its port, which YAML takes for a list.
func (d *decoder) bracketed(at position) {
	behind := position{at.line, at.column + 1}
	if d.runeAt(behind) == ':' && d.textBehind(behind) {
		d.report(behind, `an IPv6 address with a port needs quotes: "[::1]:8125"`, "text right behind a list")
	}
}

// textBehind reports whether text follows right behind the place.
func (d *decoder) textBehind(at position) bool {
	r := d.runeAt(position{at.line, at.column + 1})
	return r != 0 && !strings.ContainsRune(" \t,]}", r)
}

// runeAt returns the character at the place, or 0 behind the end of its line.
func (d *decoder) runeAt(at position) rune {
	if at.line > len(d.text.raw) {
		return 0
	}
	column := 0
	for _, r := range d.text.raw[at.line-1] {
		if column++; column == at.column {
			return r
		}
	}
	return 0
}
