package wire

import (
	"encoding/json"

	"github.com/hotparam/hotparam/rules"
)

// HotWas is what the keys of a change were before it, for those who read the stream and have
// not seen them become hot. It is by member ([rules.Key.String]).
type HotWas struct {
	// Cool are the keys that cooled, with their last counts. Key is not set.
	Cool map[string]rules.Hot
	// Again are the keys among the hot ones that were hot before: the change wrote them with
	// another limit, or under another owner or publisher.
	Again map[string]bool
}

// ParseHotWas reads the field "was" of an entry of the stream, which the publisher's script
// writes:
//
//	{"cool":{"search-terms GET /search?q=tablet":{"rate":3,"info":{…}}},
//	 "again":["search-terms GET /search?q=phone"]}
//
// It is empty in entries of earlier versions. What cannot be read is left out.
func ParseHotWas(value string) HotWas {
	var raw struct {
		Cool map[string]struct {
			Rate float64         `json:"rate"`
			Info json.RawMessage `json:"info"`
		} `json:"cool"`
		Again []string `json:"again"`
	}
	if value == "" || json.Unmarshal([]byte(value), &raw) != nil {
		return HotWas{}
	}
	was := HotWas{Cool: make(map[string]rules.Hot, len(raw.Cool)), Again: make(map[string]bool, len(raw.Again))}
	for _, member := range raw.Again {
		was.Again[member] = true
	}
	for member, before := range raw.Cool {
		if h, err := ParseHotInfo(before.Info); err == nil {
			h.Rate = max(0, before.Rate)
			was.Cool[member] = h
		}
	}
	return was
}
