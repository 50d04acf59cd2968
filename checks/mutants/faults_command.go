package mutants

// Faults in the commands' reports on rules and on a fleet.

var commandFaults = []Fault{
	{
		Name: "an explanation counts on limits that are fresh", File: "middleware/explain.go",
		Old: "t := &trace{usedUp: i == 1}", New: "t := &trace{}",
		Test: "TestExplainDecides",
	},
	{
		Name: "an explanation consumes the body", File: "middleware/explain.go",
		Old: "		req.HTTP.Body = body()\n", New: "",
		Test: "TestExplainLeavesTheBody",
	},
	{
		Name: "a redacted value is explained by a key that is not the fleet's", File: "internal/explain/document.go",
		Old: "		k.Key = placeholder.ReplaceAllString(x.Text, \"hmac-?\")\n", New: "",
		Test: "TestExplain",
	},
	{
		Name: "the schema takes fields that nobody knows", File: "config/settings.go",
		Old: "\"additionalProperties\": false}\n	if len(required)", New: "\"additionalProperties\": true}\n	if len(required)",
		Test: "TestSchemaAndParserAgreeOverMutatedFiles",
	},
	{
		Name: "doctor takes a missing right for one that is there", File: "internal/doctor/rights.go",
		Old: "strings.Contains(text, \"NOPERM\") &&", New: "false &&",
		Test: "TestMissingRightsAreNamed",
	},
	{
		Name: "doctor tries the right to invalidate on its own key", File: "internal/doctor/rights.go",
		Old: "err := x.Client.Do(call, \"xadd\", name, \"0-0\"", New: "err := x.Client.Do(call, \"xadd\", \"hotparam:{\"+x.Namespace+\"}:control\", \"0-0\"",
		Test: "TestMissingRightsToInvalidate",
	},
	{
		Name: "doctor does not miss an instance", File: "internal/doctor/members.go",
		Old: "!found && time.Since(m.Started) > heardWithin", New: "!found && false",
		Test: "TestEachFaultIsFound",
	},
	{
		Name: "a variable precedes its flag", File: "cmd/hotparam/variables.go",
		Old: "value != \"\" && !f.Changed &&", New: "value != \"\" &&",
		Test: "TestEachFlagHasItsVariable",
	},
}
