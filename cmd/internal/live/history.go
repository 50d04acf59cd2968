package live

import (
	"math"
	"time"

	"github.com/hotparam/hotparam/internal/published"
)

// MaxPoints is the number of points that are kept of a key: five minutes, one a second.
const MaxPoints = 300

// MaxHistories is the number of keys that have a history.
const MaxHistories = 1000

// Point is the rate of a key, and the bounds of its count, at one instant.
type Point struct {
	At   time.Time
	Rate float64 // units per second
	Low  int64
	High int64 // or published.Unknown
	// Refused is the share of the requests that were refused, of 0 to 1; 0 if it is not known.
	Refused float64
}

// point is a Point in 20 bytes. The seven digits of a float32 are more than a line on a screen
// can show. The snapshot has the current counts in full.
type point struct {
	seconds uint32 // time since 1970
	rate    float32
	low     float32
	high    float32 // NaN if not known
	refused float32
}

func newPoint(t time.Time, h *published.Hot) point {
	p := point{seconds: uint32(t.Unix()), rate: float32(h.Rate), low: float32(h.Low), high: float32(math.NaN())}
	if h.High != published.Unknown {
		p.high = float32(h.High)
	}
	return p
}

// History holds the points of a key, the oldest first. It is immutable: points that are added
// later do not show in it. The zero History is empty.
type History struct{ points []point }

// Len returns the number of points, at most [MaxPoints].
func (h History) Len() int { return len(h.points) }

// At returns the i-th point; the oldest is 0.
func (h History) At(i int) Point {
	p := h.points[i]
	high := published.Unknown
	if p.high == p.high { // not NaN
		high = int64(p.high)
	}
	return Point{At: time.Unix(int64(p.seconds), 0), Rate: float64(p.rate), Low: int64(p.low), High: high, Refused: float64(p.refused)}
}

// Points returns all points.
func (h History) Points() []Point {
	all := make([]Point, h.Len())
	for i := range all {
		all[i] = h.At(i)
	}
	return all
}

// slack is the number of points that are appended before the old ones are dropped by a copy.
const slack = 75

// add returns the history with one more point. The receiver does not change, but shares its
// points with the result, so only the newest history may be added to.
func (h History) add(p point) History {
	points := h.points
	if n := len(points); n > 0 && points[n-1].seconds >= p.seconds {
		return h // one a second
	}
	if len(points) == cap(points) {
		kept := points[max(0, len(points)-MaxPoints+1):]
		points = append(make([]point, 0, min(max(8, 2*len(kept)), MaxPoints+slack)), kept...)
	}
	points = append(points, p)
	return History{points[max(0, len(points)-MaxPoints):]}
}
