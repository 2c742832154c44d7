package godwit

// A Match is what a request that replaces an object expects of it. The zero value expects nothing.
type Match struct {
	Version int64 // the object has this version; 0: any
	Exists  bool  // the object exists
	Missing bool  // the object does not exist
}

// Holds reports whether an object with the version is as expected. The version of an object that does not exist is 0.
func (m Match) Holds(version int64) bool {
	return (m.Version == 0 || m.Version == version) && !(m.Exists && version == 0) && !(m.Missing && version != 0)
}
