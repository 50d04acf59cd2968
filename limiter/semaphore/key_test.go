package semaphore

import (
	"strconv"
	"testing"

	"github.com/hotparam/hotparam/rules"
)

// A key that is forgotten, although it was the last that got a permit, has one state when it
// returns: its permit is not granted twice.
func TestForgottenKeyHasOneState(t *testing.T) {
	st := &New(Config{}).stripes[0]
	acquire := func(key string) *slot {
		l, _ := st.acquire(key, &Request{Permits: 1}, new(rules.Decision))
		return l
	}
	use := func(key string) { l := acquire(key); l.Release(l.id) }
	for i := range maxIdleKeys {
		use(strconv.Itoa(i))
	}
	other := acquire("other")
	use("0") // the one that has been kept for the longest
	other.Release(other.id)
	if st.keys["0"] != nil {
		t.Fatal("the key is not forgotten")
	}
	l := acquire("0")
	use("1")
	if acquire("0") != nil {
		t.Error("the permit is granted twice")
	}
	l.Release(l.id)
}
