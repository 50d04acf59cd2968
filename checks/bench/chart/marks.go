package chart

import (
	"fmt"
	"strings"
)

// ReplaceBetween returns a page in which a text replaces the lines between two marks.
func ReplaceBetween(page, begin, end, text string) (string, error) {
	before, tail, ok := strings.Cut(page, begin)
	if !ok {
		return "", fmt.Errorf("the page has no line %q", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(tail, end)
	if !ok {
		return "", fmt.Errorf("the page has no %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin))
	}
	return before + begin + text + end + after, nil
}
