package testenv

import "testing"

func TestRedisCell(t *testing.T) {
	server := RedisCell(t)
	got, err := server.do(t.Context(), "CL.THROTTLE", "key", 4, 1, 60).Int64Slice()
	if err != nil || len(got) != 5 || got[0] != 0 || got[1] != 5 || got[2] != 4 {
		t.Errorf("CL.THROTTLE answers %d, %v", got, err)
	}
}
