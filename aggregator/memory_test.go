package aggregator

import "testing"

func TestSplitMemory(t *testing.T) {
	if windows, accounts := SplitMemory(8 << 20); windows != 7<<20 || accounts != 1<<20 {
		t.Errorf("8 MiB are %d and %d", windows, accounts)
	}
}
