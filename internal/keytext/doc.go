// Package keytext writes the text of keys: the parameters of a request in one form and order,
// whatever a client wrote, without secrets. Package rules says what a key is ([rules.Key]) and which
// parameters make one ([rules.By]).
//
// Files, in the order of the data:
//
//	normalise.go      the parameters of a request, sorted and escaped
//	redactor.go       values that are replaced by their HMAC
//	mask.go           secrets within values and paths
//	values.go         repeated parameters
//	combinations.go   the parameters that a rule combines
//	plainquery.go     the same text in one pass, for queries that need no escaping
//	foreignkey.go     keys that another program wrote
package keytext
