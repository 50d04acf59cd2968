package published

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Invalidation names answers that instances keep in memory and may no longer use. It has only
// identifiers of targets and of keys, which reveal neither.
type Invalidation struct {
	// Sender is an identifier of the process that wrote it, which has already acted on it.
	Sender string
	// All means that no answer may be used any more.
	All     bool
	Targets []uint64
	// Tags are identifiers of keys.
	Tags []uint64
}

// MaxInvalidation is the most targets and tags of an [Invalidation].
const MaxInvalidation = 256

// EncodeInvalidation returns the fields and values of an entry of the stream:
//
//	sender 93f0a1c2… answers "target:c5b90eb958f21f8a tag:80c609994bfb5608"
//
// The word "all" stands for all answers.
func EncodeInvalidation(i *Invalidation) []string {
	var b strings.Builder
	if i.All {
		b.WriteString("all ")
	}
	for _, id := range i.Targets {
		fmt.Fprintf(&b, "target:%016x ", id)
	}
	for _, id := range i.Tags {
		fmt.Fprintf(&b, "tag:%016x ", id)
	}
	return []string{"sender", i.Sender, "answers", strings.TrimSuffix(b.String(), " ")}
}

var errInvalidation = errors.New("invalidation: not one that this version knows")

// ParseInvalidation reads the fields of an entry that [EncodeInvalidation] wrote.
func ParseInvalidation(fields map[string]any) (Invalidation, error) {
	sender, _ := fields["sender"].(string)
	answers, _ := fields["answers"].(string)
	i := Invalidation{Sender: sender}
	if answers == "" || len(answers) > (MaxInvalidation+1)*len("target:c5b90eb958f21f8a ") {
		return Invalidation{}, errInvalidation
	}
	for word := range strings.SplitSeq(answers, " ") {
		kind, digits, _ := strings.Cut(word, ":")
		id, err := strconv.ParseUint(digits, 16, 64)
		switch {
		case word == "all":
			i.All = true
		case err != nil:
			return Invalidation{}, errInvalidation
		case kind == "target":
			i.Targets = append(i.Targets, id)
		case kind == "tag":
			i.Tags = append(i.Tags, id)
		default:
			return Invalidation{}, errInvalidation
		}
	}
	return i, nil
}
