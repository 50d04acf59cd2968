package gateways

import "testing"

func TestBetween(t *testing.T) {
	t.Parallel()
	const text = "a: 1\nb: 2\nc: 3\nb: 4\n"
	for _, c := range []struct{ from, to, want, err string }{
		{"b:", "c:", "b: 2\n", ""},
		{"\nb:", "\nb: 4", "\nb: 2\nc: 3", ""},
		{"d:", "c:", "", `no "d:"`},
		{"c:", "a:", "", `no "a:" after "c:"`},
	} {
		got, err := between(text, c.from, c.to)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("between %q and %q: %q, %v", c.from, c.to, got, err)
		}
	}
}

func TestWithoutLines(t *testing.T) {
	t.Parallel()
	const text = "frontend\n  filter spoe x\n  http-request a\n  default app\nbackend app\n  server a\n\nbackend hotparam\n  server h\n"
	want := "frontend\n  default app\nbackend app\n  server a\n\n"
	if got := withoutLines(text, "backend hotparam", "filter spoe", "http-request"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
