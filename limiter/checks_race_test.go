//go:build race

package limiter_test

import "flag"

// The race detector finds as much with few random cases as with many, and is slow with many.
// scripts/test also runs this package without it, and then with the full number of cases.
func init() {
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
}
