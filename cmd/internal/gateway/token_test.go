package gateway

import "testing"

func TestToken(t *testing.T) {
	none, token := newToken(""), newToken("secret")
	if !none.accepts("") || !none.accepts("x") || !token.accepts("secret") || token.accepts("") || token.accepts("Secret") {
		t.Error("a token is not what it should be")
	}
}
