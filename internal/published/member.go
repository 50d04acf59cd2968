package published

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Member is the state that an instance or an aggregator reports in its heartbeats.
type Member struct {
	Name string
	Role Role
	// RulesVersion is the version of the rules that are in force.
	RulesVersion string
	// Program is the program's version, or empty if it is not known.
	Program string
	Started time.Time
	// Heard is when the last heartbeat came. It is set by the reader.
	Heard time.Time
	// Offset is how far the member's clock is ahead of Redis's. It is valid if OffsetKnown is
	// true.
	Offset      time.Duration
	OffsetKnown bool
	// Dropped counts what the member dropped in the last minute: counts of an instance, or lines
	// and packets of an aggregator. Arrived is the number of packets, or records of Kafka, that
	// reached an aggregator in the last minute. Lost is the number that was sent and did not.
	Dropped, Lost, Arrived int64
	// MemoryUsed and MemoryMax are in bytes. Zero means not known, or no bound.
	MemoryUsed, MemoryMax int64
	// Floor is the greatest count that a key without a counter of its own may have in a
	// window of an aggregator.
	Floor int64
	// Waiting is the number of hot keys of an aggregator that are limited nowhere, because its
	// published set is full.
	Waiting int64
	// Held is the number of hot keys that an instance holds without confirmation by an
	// aggregator. HeldSince is the start of that time, on the instance's own clock.
	Held      int64
	HeldSince time.Time
	// Displaced is the number of keys of an instance's limits that found their tables full in the
	// last minute: see middleware's Stats.
	Displaced int64
	// Admitted are the admissions of hot keys by an instance in the last seconds, the highest
	// numbers first. MoreAdmitted reports whether keys are missing.
	Admitted     []Admitted
	MoreAdmitted bool
	// Left reports whether the member has ended. Its Admitted are its last.
	Left bool
	// Incarnation identifies this start of the process. It is set by the reader.
	Incarnation string
	// Problem describes a problem of the member, such as a rules file that was refused. It is
	// empty if there is none.
	Problem string
}

// Admitted is the number of admissions of a hot key by the limits of an instance.
type Admitted struct {
	// ID identifies the key without revealing it.
	ID uint64
	// N is the number of requests, or of bytes, milliseconds or units, that were admitted in the
	// last Span.
	N    int64
	Span time.Duration
	// OnHot counts the requests in the same Span that on_hot concerned.
	OnHot OnHotCounts
	// Lately are the outcomes in the same Span, and Outcomes those since the key became hot, which
	// was at Since.
	Lately, Outcomes Outcomes
	Since            time.Time
}

// Outcomes count requests of a hot key by what became of them.
type Outcomes struct {
	Passed  int64 // by the key's limit, or without asking it
	Refused int64 // by the key's limit; in shadow mode they passed all the same
	Waited  int64 // part of Passed: after a wait
	Served  int64 // in neither of them: answered by on_hot, so the limit was not asked
}

// Requests returns the number of all requests.
func (o Outcomes) Requests() int64 { return o.Passed + o.Refused + o.Served }

// Plus returns the sum of both.
func (o Outcomes) Plus(p Outcomes) Outcomes {
	return Outcomes{o.Passed + p.Passed, o.Refused + p.Refused, o.Waited + p.Waited, o.Served + p.Served}
}

// Minus returns what o has more than p: each count is at least zero.
func (o Outcomes) Minus(p Outcomes) Outcomes {
	return Outcomes{max(0, o.Passed-p.Passed), max(0, o.Refused-p.Refused), max(0, o.Waited-p.Waited), max(0, o.Served-p.Served)}
}

// OnHotCounts count the requests of a hot key whose rule has on_hot. It leaves out those that ran
// the handler for others.
type OnHotCounts struct {
	Stored, Joined int64 // answered from memory, and by the answer to an identical request under way
	Alone          int64 // not for sharing: answered as without on_hot
	// AloneFor is the reason of the last request in Alone, in one word with hyphens, such as
	// "set-cookie". It is empty if there was none.
	AloneFor string
}

// Compare orders the highest number of admissions first, then the most answers without one.
func (a Admitted) Compare(b Admitted) int {
	return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(b.OnHot.Stored+b.OnHot.Joined, a.OnHot.Stored+a.OnHot.Joined), cmp.Compare(a.ID, b.ID))
}

// Role is what a [Member] does.
type Role string

// Roles of members.
const (
	RoleInstance   Role = "instance"
	RoleAggregator Role = "aggregator"
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
	Role      Role   `json:"role"`
	Rules     string `json:"rules,omitempty"`
	Program   string `json:"program,omitempty"`
	Started   int64  `json:"started,omitempty"`
	OffsetMS  *int64 `json:"offset_ms,omitempty"` // nil if it is not known
	Dropped   int64  `json:"dropped,omitempty"`
	Lost      int64  `json:"lost,omitempty"`
	Arrived   int64  `json:"arrived,omitempty"`
	Used      int64  `json:"memory,omitempty"`
	Max       int64  `json:"memory_max,omitempty"`
	Floor     int64  `json:"floor,omitempty"`
	Waiting   int64  `json:"waiting,omitempty"`
	Displaced int64  `json:"displaced,omitempty"`
	Held      int64  `json:"held,omitempty"`
	HeldFrom  int64  `json:"held_since,omitempty"`
	Problem   string `json:"problem,omitempty"`

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
func EncodeMember(m *Member) []byte {
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
func ParseMember(field string, value []byte) (Member, error) {
	name, incarnation, ok := cutMember(field)
	if !ok || len(value) > MaxMember {
		return Member{}, errMember
	}
	var raw memberJSON
	if err := json.Unmarshal(value, &raw); err != nil {
		return Member{}, fmt.Errorf("heartbeat of a member: %w", err)
	}
	switch {
	case raw.Role != RoleInstance && raw.Role != RoleAggregator,
		raw.Started < 0 || raw.Started > maxMillis,
		raw.Held < 0 || raw.HeldFrom < 0 || raw.HeldFrom > maxMillis,
		raw.OffsetMS != nil && (*raw.OffsetMS > maxOffset || *raw.OffsetMS < -maxOffset),
		min(raw.Dropped, raw.Lost, raw.Arrived, raw.Used, raw.Max, raw.Floor, raw.Waiting, raw.Displaced) < 0,
		len(raw.Admitted) > MaxAdmitted, len(raw.Rules) > maxVersion, len(raw.Program) > maxVersion, len(raw.Problem) > maxProblem:
		return Member{}, errMember
	}
	m := Member{
		Name: name, Role: raw.Role, RulesVersion: raw.Rules, Program: raw.Program,
		Dropped: raw.Dropped, Lost: raw.Lost, Arrived: raw.Arrived, MemoryUsed: raw.Used, MemoryMax: raw.Max, Floor: raw.Floor, Waiting: raw.Waiting, Displaced: raw.Displaced,
		Held: raw.Held, Problem: raw.Problem, MoreAdmitted: raw.MoreAdmitted, Left: raw.Left, Incarnation: incarnation,
	}
	for text, of := range raw.Admitted {
		id, err := strconv.ParseUint(text, 16, 64)
		if err != nil || !of.valid() {
			return Member{}, errMember
		}
		m.Admitted = append(m.Admitted, of.admitted(id))
	}
	slices.SortFunc(m.Admitted, Admitted.Compare)
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
