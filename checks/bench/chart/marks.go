package chart

import (
	"fmt"
	"os"
	"strings"
)

// WriteBetween writes a text into a page's file, in place of the lines between two marks.
func WriteBetween(path, begin, end, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := replaceBetween(string(page), begin, end, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}

// replaceBetween returns a page in which a text replaces the lines between two marks.
func replaceBetween(page, begin, end, text string) (string, error) {
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
