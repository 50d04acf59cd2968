package gateway

import (
	"encoding/json"
	"net/http"
)

// ProblemBody is the body of the response to a call that is refused undecided, in the format of RFC
// 9457.
type ProblemBody struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

// ProblemBody returns the bytes of a [ProblemBody].
func ProblemBody(status int, detail string) []byte {
	body, _ := json.Marshal(ProblemBody{"about:blank", http.StatusText(status), status, detail}) // strings and a number always marshal
	return body
}
