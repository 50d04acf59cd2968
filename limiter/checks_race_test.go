//go:build race

package limiter_test

import "flag"

// The race detector finds by a few random cases what it finds by many, and takes long over
// them. scripts/test runs this package without it, too, and then as many as there should be.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
