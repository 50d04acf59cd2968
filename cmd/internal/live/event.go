package live

import (
	"encoding/json"
	"time"

	"github.com/hotparam/hotparam/internal/hotwords"
	"github.com/hotparam/hotparam/internal/published"
	"github.com/hotparam/hotparam/rules"
)

// Type is the kind of an [Event].
type Type string

// Types of events.
const (
	Hot     Type = "hot"     // a key became hot
	Cool    Type = "cool"    // a key cooled
	Pin     Type = "pin"     // an operator holds a key to its limit
	Block   Type = "block"   // an operator refuses a key's requests
	Allow   Type = "allow"   // an operator lifts a key's limit
	Release Type = "release" // an operator ended a control
	Expired Type = "expired" // a control reached its end
)

// Event is one event of a key of a namespace. It has the same form in `hotparam watch --json`,
// in the server-sent events of the aggregator and in its webhook. Events are immutable.
type Event struct {
	// ID identifies the event for every reader. IDs of a namespace are ordered by
	// [Event.Compare].
	ID string
	// At is when it happened, on Redis's clock.
	At        time.Time
	Type      Type
	Namespace string
	Rule, Key string
	// Counts are the counts of the key; those of a Cool event are the last before it cooled.
	// They are nil for controls, and for keys whose entry could not be read.
	Counts *Counts
	// Outcomes are what became of a cooled key's requests, up to some seconds before it cooled. They
	// are nil for other events, and if they are not known.
	Outcomes *published.Outcomes
	// Limit is the key's limit with its unit, "50/s" or "2MB/s"; that of a Cool event is the
	// limit until then. It is empty for keys without a limit and for controls.
	Limit string
	// Why is the reason in words: the count that was reached, or the reason that the operator
	// gave.
	Why string
	// Until is when a control expires. It is zero in events of hot keys, which stay published
	// for as long as they are hot.
	Until time.Time
	// By is the owner that published the key, or the author of a control.
	By string

	position position
	since    time.Time // start of the heating of a Hot event, on its publisher's clock
}

// Counts are the rate of a key, the bounds of its count, and the threshold that it reached.
type Counts struct {
	Rate float64 // units per second
	Low  int64
	High int64 // or published.Unknown
	// Threshold is written as in the rules file, "200/s" or "20%/1m". Window is the time in
	// which Low and High count. Threshold is empty and Window zero if they are not known.
	Threshold string
	Window    time.Duration
	Unit      rules.Unit
}

// eventJSON is the JSON form of an Event. A field that does not apply is null, so that a reader
// need not check which fields are present.
type eventJSON struct {
	ID        string   `json:"id"`
	At        string   `json:"at"`
	Type      Type     `json:"type"`
	Namespace string   `json:"namespace"`
	Rule      string   `json:"rule"`
	Key       string   `json:"key"`
	Rate      *float64 `json:"rate"`
	Low       *int64   `json:"low"`
	High      *int64   `json:"high"`
	Threshold *string  `json:"threshold"`
	Window    *string  `json:"window"`
	Unit      *string  `json:"unit"`
	Why       string   `json:"why"`
	Limit     *string  `json:"limit"`
	Until     *string  `json:"until"`
	By        string   `json:"by"`

	Outcomes *outcomesJSON `json:"outcomes"`
}

type outcomesJSON struct {
	Passed  int64 `json:"passed"`
	Refused int64 `json:"refused"`
	Waited  int64 `json:"waited"`
	Served  int64 `json:"served"`
}

// timeForm has milliseconds, the resolution of the events' times.
const timeForm = "2006-01-02T15:04:05.000Z07:00"

// MarshalJSON implements [json.Marshaler]:
//
//	{"id":"1732172445123-0.h0","at":"2024-11-21T07:00:45.123Z","type":"hot","namespace":"shop",
//	 "rule":"search-terms","key":"GET /search?q=phone","rate":212,"low":212,"high":230,
//	 "threshold":"200/s","window":"1s","unit":"requests","why":"212-230 in 1s, hot at 200/s",
//	 "limit":"50/s","until":null,"by":"statsd","outcomes":null}
func (e Event) MarshalJSON() ([]byte, error) {
	raw := eventJSON{
		ID: e.ID, At: e.At.UTC().Format(timeForm), Type: e.Type, Namespace: e.Namespace, Rule: e.Rule, Key: e.Key,
		Why: e.Why, By: e.By, Limit: orNil(e.Limit),
	}
	if c := e.Counts; c != nil {
		raw.Rate, raw.Low = &c.Rate, &c.Low
		if c.High != published.Unknown {
			raw.High = &c.High
		}
		if c.Window > 0 {
			raw.Window = orNil(hotwords.Span(c.Window))
			raw.Threshold, raw.Unit = orNil(c.Threshold), orNil(c.Unit.String())
		}
	}
	raw.Outcomes = (*outcomesJSON)(e.Outcomes)
	if !e.Until.IsZero() {
		raw.Until = orNil(e.Until.UTC().Format(timeForm))
	}
	return json.Marshal(raw)
}

func orNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Compare orders events as they happened. Events of one instant are in an order that is the
// same for each reader.
func (e *Event) Compare(other *Event) int { return e.position.compare(other.position) }
