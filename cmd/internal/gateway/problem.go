package gateway

import (
	"encoding/json"
	"net/http"
)

// Problem is the body of the response to a call that is refused undecided, in the format of RFC
// 9457.
type Problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// ProblemBody returns the bytes of a [Problem].
func ProblemBody(status int, detail string) []byte {
	body, _ := json.Marshal(Problem{"about:blank", http.StatusText(status), status, detail}) // strings and a number always marshal
	return body
}
