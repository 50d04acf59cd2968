package statsdsink

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hotparam/hotparam/collector"
	"github.com/hotparam/hotparam/rules"
)

// lineSender keeps the lines that are sent.
type lineSender struct{ sent strings.Builder }

func (l *lineSender) Send(packet []byte) (int, error) { return l.sent.Write(packet) }
func (l *lineSender) Close() error                    { return nil }

// Totals go to our own listener alone. Other readers of the lines get the same lines as ever.
func TestTotalsAreForOurListener(t *testing.T) {
	rule := rules.Rule{ID: "r", By: rules.By{Kind: rules.ByEach}, Hot: []rules.Threshold{rules.NewThreshold(rules.Rate{N: 5, Per: time.Second})}}
	for _, test := range []struct {
		name   string
		config Config
		want   bool
	}{
		{"plain", Config{}, true},
		{"strict", Config{Strict: true}, false},
		{"no meta", Config{NoMeta: true}, false},
	} {
		out := &lineSender{}
		test.config.Rules = &rules.Rules{Namespace: "shop", Rules: []rules.Rule{rule}}
		test.config.Sender, test.config.Instance = out, "i"
		sink, err := New(test.config)
		if err != nil {
			t.Fatal(err)
		}
		sent := sink.Send(context.Background(), collector.Flush{}, []collector.Count{
			{Rule: []byte("r"), Text: []byte("GET /s?*"), N: 7}, {Rule: []byte("r"), Text: []byte("GET /s?q=1"), N: 3},
		})
		if sent.Err != nil || sent.Failed != 0 {
			t.Errorf("%s: %+v", test.name, sent)
		}
		if got := strings.Contains(out.sent.String(), ":7|c"); got != test.want || !strings.Contains(out.sent.String(), ":3|c") {
			t.Errorf("%s: sent %q", test.name, out.sent.String())
		}
	}
}
