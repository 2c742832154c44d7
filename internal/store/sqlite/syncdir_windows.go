//go:build windows

package sqlite

// SyncDirectory does nothing: Windows makes entries of directories durable by itself and offers no call for it.
func SyncDirectory(string) error { return nil }
