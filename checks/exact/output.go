package exact

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Summary is the last line that `hotparam replay --json` prints.
type Summary struct {
	Requests, Skipped, Keys, Hot, Limited, Late int64
	Seconds                                     float64
}

// ReadOutput reads the output of `hotparam replay --json`: events, one to a line, then the
// summary.
func ReadOutput(in io.Reader) (events []HotChange, summary Summary, err error) {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 1<<20)
	complete := false
	for scanner.Scan() {
		var line struct {
			Event, Rule, Key string
			Time             time.Time
			Low              int64
			High             *int64
			Threshold        string
		}
		if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
			return nil, Summary{}, fmt.Errorf("%w: %s", err, scanner.Bytes())
		}
		if line.Event == "summary" {
			complete = true
			// "hot" is a number in a summary and absent from all other lines.
			if err := json.Unmarshal(scanner.Bytes(), &summary); err != nil {
				return nil, Summary{}, err
			}
			continue
		}
		e := HotChange{Key: line.Key, Hot: line.Event == "hot", At: line.Time.UnixNano(), Low: line.Low, High: -1, Rule: line.Rule, Threshold: line.Threshold}
		if line.High != nil {
			e.High = *line.High
		}
		events = append(events, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, Summary{}, err
	}
	if !complete {
		return nil, Summary{}, io.ErrUnexpectedEOF
	}
	return events, summary, nil
}

// CompareSummary checks the summary of a replay against r, requests and seconds.
func (r LogResult) CompareSummary(s Summary, requests int64, seconds float64) (wrong []string) {
	return CompareSummary(map[string]LogResult{"": r}, s, requests, seconds)
}

// CompareSummary compares like [LogResult.CompareSummary], but for several rules.
func CompareSummary(results map[string]LogResult, s Summary, requests int64, seconds float64) (wrong []string) {
	keys, hot := 0, 0
	for _, r := range results {
		keys += r.Keys
		hot += len(r.Events)
	}
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"requests", s.Requests, requests},
		{"keys", s.Keys, int64(keys)},
		{"hot", s.Hot, int64(hot)},
		{"late", s.Late, 0},
	} {
		if c.got != c.want {
			wrong = append(wrong, fmt.Sprintf("summary: %d %s, want %d", c.got, c.name, c.want))
		}
	}
	if d := s.Seconds - seconds; d < -1e-6 || d > 1e-6 {
		wrong = append(wrong, fmt.Sprintf("summary: %v seconds, want %v", s.Seconds, seconds))
	}
	return wrong
}
