package statsdsink

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// keptPackets is a sender that keeps its packets.
type keptPackets struct{ strings.Builder }

func (k *keptPackets) Send(packet []byte) (int, error) { return k.Write(packet) }
func (k *keptPackets) Close() error                    { return nil }

// The excess of a group's total goes to our own listener only. Others, which would make a series of
// it, get the same lines as ever.
func TestWhatAShareHasTooMuchIsForOurListener(t *testing.T) {
	share := rules.Threshold{Kind: rules.Share, Factor: rules.Percent(50), Rate: rules.Rate{N: 5, Per: time.Second}}.WithDefaults()
	rules := &rules.Rules{Namespace: "shop", Rules: []rules.Rule{
		{ID: "r", By: rules.By{Kind: rules.ByEach}, Hot: []rules.Threshold{share, rules.NewThreshold(rules.Rate{N: 5, Per: time.Second})}},
	}}
	again, key := []byte("GET /s?~again&q"), []byte("GET /s?q=1")
	for name, test := range map[string]struct {
		config Config
		want   bool
	}{
		"plain":   {Config{}, true},
		"strict":  {Config{Strict: true}, false},
		"no meta": {Config{NoMeta: true}, false},
	} {
		var out keptPackets
		test.config.Rules, test.config.Sender, test.config.Instance = rules, &out, "i"
		sink, err := New(test.config)
		if err != nil {
			t.Fatal(err)
		}
		sent := sink.Send(context.Background(), collector.Flush{}, []collector.Count{{Rule: []byte("r"), Text: again, N: 7}, {Rule: []byte("r"), Text: key, N: 3}})
		if sent.Err != nil || sent.Failed != 0 {
			t.Errorf("%s: %+v", name, sent)
		}
		if got := strings.Contains(out.String(), ":7|c"); got != test.want || !strings.Contains(out.String(), ":3|c") {
			t.Errorf("%s: sent %q", name, out.String())
		}
	}
}
