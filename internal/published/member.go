package published

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hotparam/hotparam/rules"
)

// Bounds of heartbeats.
const (
	MaxMembers     = 10_000 // of one namespace
	MaxMemberName  = 256    // bytes
	MaxMember      = 16384  // bytes of a member's value in Redis; up to 14,000 with MaxAdmitted keys
	MaxAdmitted    = 64     // hot keys whose admissions a member reports
	maxProblem     = 512    // bytes of a problem
	maxVersion     = 128    // bytes of a version
	maxIncarnation = 63     // bytes
	// maxOffset bounds a clock's offset: ten years in milliseconds.
	maxOffset = 10 * 365 * 24 * 60 * 60 * 1000
)

// MemberField returns the field of a member's value: its name, a space, its incarnation. So two
// processes with one name are two members.
func MemberField(name, incarnation string) string { return name + " " + incarnation }

func cutMember(field string) (name, incarnation string, ok bool) {
	i := strings.LastIndexByte(field, ' ')
	return field[:max(i, 0)], field[i+1:], i > 0 && i <= MaxMemberName && len(field)-i-1 <= maxIncarnation
}

// memberJSON is a heartbeat in JSON. Times are unix milliseconds on the member's own clock.
type memberJSON struct {
	Role      rules.Role `json:"role"`
	Rules     string     `json:"rules,omitempty"`
	Program   string     `json:"program,omitempty"`
	Started   int64      `json:"started,omitempty"`
	OffsetMS  *int64     `json:"offset_ms,omitempty"` // nil if it is not known
	Dropped   int64      `json:"dropped,omitempty"`
	Lost      int64      `json:"lost,omitempty"`
	Arrived   int64      `json:"arrived,omitempty"`
	Used      int64      `json:"memory,omitempty"`
	Max       int64      `json:"memory_max,omitempty"`
	Floor     int64      `json:"floor,omitempty"`
	Waiting   int64      `json:"waiting,omitempty"`
	Displaced int64      `json:"displaced,omitempty"`
	Held      int64      `json:"held,omitempty"`
	HeldFrom  int64      `json:"held_since,omitempty"`
	Problem   string     `json:"problem,omitempty"`

	Admitted     map[string]admittedJSON `json:"admitted,omitempty"` // by the id of the key, in hex
	MoreAdmitted bool                    `json:"more_admitted,omitempty"`
	Left         bool                    `json:"left,omitempty"`
}

// EncodeMember returns the value of a member's heartbeat:
//
//	{"role":"instance","rules":"a1b2c3d4","program":"v1.2.0","started":1732172445123,"offset_ms":-3,"dropped":0,…}
//
// Fields that are zero are left out, and texts that are too long are cut. The name is part of the
// field under which the value is stored ([MemberField]), as is the incarnation. Heard is not written.
func EncodeMember(m *rules.Member) []byte {
	raw := memberJSON{
		Role: m.Role, Rules: CutVersion(m.RulesVersion), Program: cutText(m.Program, maxVersion),
		Dropped: m.Dropped, Lost: m.Lost, Arrived: m.Arrived, Used: m.MemoryUsed, Max: m.MemoryMax, Floor: m.Floor, Waiting: m.Waiting, Displaced: m.Displaced,
		Held: m.Held, Problem: cutText(m.Problem, maxProblem), Left: m.Left,
	}
	if !m.Started.IsZero() {
		raw.Started = m.Started.UnixMilli()
	}
	if !m.HeldSince.IsZero() {
		raw.HeldFrom = m.HeldSince.UnixMilli()
	}
	n := min(len(m.Admitted), MaxAdmitted)
	raw.MoreAdmitted = m.MoreAdmitted || n < len(m.Admitted)
	for _, a := range m.Admitted[:n] {
		if raw.Admitted == nil {
			raw.Admitted = make(map[string]admittedJSON, n)
		}
		raw.Admitted[strconv.FormatUint(a.ID, 16)] = newAdmitted(&a)
	}
	if m.OffsetKnown {
		ms := m.Offset.Milliseconds()
		raw.OffsetMS = &ms
	}
	return encode(raw)
}

// CutVersion returns a version of the rules in the form that a heartbeat has.
func CutVersion(version string) string { return cutText(version, maxVersion) }

// cutText returns the first n bytes of valid text.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

var errMember = errors.New("heartbeat of a member: a field is out of range, or too long")

// ParseMember reads a value that [EncodeMember] wrote under this field.
func ParseMember(field string, value []byte) (rules.Member, error) {
	name, incarnation, ok := cutMember(field)
	if !ok || len(value) > MaxMember {
		return rules.Member{}, errMember
	}
	var raw memberJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return rules.Member{}, fmt.Errorf("heartbeat of a member: %w", err)
	}
	switch {
	case raw.Role != rules.RoleInstance && raw.Role != rules.RoleAggregator,
		raw.Started < 0 || raw.Started > maxMillis,
		raw.Held < 0 || raw.HeldFrom < 0 || raw.HeldFrom > maxMillis,
		raw.OffsetMS != nil && (*raw.OffsetMS > maxOffset || *raw.OffsetMS < -maxOffset),
		min(raw.Dropped, raw.Lost, raw.Arrived, raw.Used, raw.Max, raw.Floor, raw.Waiting, raw.Displaced) < 0,
		len(raw.Admitted) > MaxAdmitted, len(raw.Rules) > maxVersion, len(raw.Program) > maxVersion, len(raw.Problem) > maxProblem:
		return rules.Member{}, errMember
	}
	m := rules.Member{
		Name: name, Role: raw.Role, RulesVersion: raw.Rules, Program: raw.Program,
		Dropped: raw.Dropped, Lost: raw.Lost, Arrived: raw.Arrived, MemoryUsed: raw.Used, MemoryMax: raw.Max, Floor: raw.Floor, Waiting: raw.Waiting, Displaced: raw.Displaced,
		Held: raw.Held, Problem: raw.Problem, MoreAdmitted: raw.MoreAdmitted, Left: raw.Left, Incarnation: incarnation,
	}
	for text, of := range raw.Admitted {
		id, err := strconv.ParseUint(text, 16, 64)
		if err != nil || !of.valid() {
			return rules.Member{}, errMember
		}
		m.Admitted = append(m.Admitted, of.admitted(id))
	}
	slices.SortFunc(m.Admitted, rules.Admitted.Compare)
	if raw.HeldFrom > 0 {
		m.HeldSince = time.UnixMilli(raw.HeldFrom)
	}
	if raw.Started > 0 {
		m.Started = time.UnixMilli(raw.Started)
	}
	if raw.OffsetMS != nil {
		m.Offset, m.OffsetKnown = time.Duration(*raw.OffsetMS)*time.Millisecond, true
	}
	return m, nil
}
