package cli

type typeFilter struct {
	Standard string `name:"standard" help:"List the types of a standard: ojs or cybercube." placeholder:"NAME"`
}

// TypeList lists event types.
type TypeList struct {
	listCommand[typeFilter] `embed:""`
}

// schemaState says which schema a type has.
func schemaState(item any) string {
	state := "no schema"
	if v := plain(dig(item, "version")); v != "" && v != "0" {
		state = "version " + v
	}
	if dig(item, "deprecated") == true {
		state += ", deprecated"
	}
	return state
}

var types = &resource{
	noun: "event type", path: "event-types", idPath: "name", jsonArray: true, whole: true,
	columns: []column{
		{title: "TYPE", path: "name"},
		{title: "SCHEMA", show: schemaState},
		{title: "DESCRIPTION", path: "description"},
	},
}
