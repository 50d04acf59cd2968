package limiter

import "testing"

// With keys for an eighth of the cells, hardly any key is charged another's debt, since it would
// have to collide with keys that owe more in each of its rows. In a single row of all cells, one
// key in sixteen collides with such a key.
func TestSketchHasSeveralRows(t *testing.T) {
	const places = 1 << 14
	const keys = places / 8
	s := newSketch(places)
	for i := range uint64(keys) {
		s.add(mixed(i, 0), &debt{debtUntil: int64(1000 + i)}, 1)
	}
	wrong := 0
	for i := range uint64(keys) {
		if got := s.upperBound(mixed(i, 0)); got[debtUntil] != int64(1000+i) {
			wrong++
		}
	}
	if wrong > keys/64 {
		t.Errorf("%d of %d owe what another key does", wrong, keys)
	}
}
